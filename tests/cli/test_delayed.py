"""`duebell delayed`: what waits is found, shown, cancelled and released; pages go on where the one before ended."""

from typing import Any

from shared.reading.delayed_content import MAX_SHOWN_BODY, describe_content
from tests.cli.command_line import Operator
from tests.cli.test_listing import follow
from tests.support.application import Application
from tests.support.delayed import a_delayed_sender, properties
from tests.support.eventually import eventually
from tests.support.services import running_consumer, running_producer
from tests.support.stores import Site

INSERT = """
insert into delayed_messages (exchange, routing_key, header, body, due_at, message_id, name, refusals, retry_at,
                              refused_because)
select $1, $2, $3, 'body', now() + n * interval '1 minute' + $4::text::interval, $1 || '-' || n, null, $6::int,
       case when $6 > 0 then now() + n * interval '1 second' end, case when $6 > 0 then 'nothing is bound' end
  from generate_series(1, $5::int) as n
"""


async def test_messages_are_found_by_exchange_key_moment_and_refusal(database: Any, duebell: Operator) -> None:
    header = properties(headers={"x-delay": -1, "odd": bytearray(b"\xff")}, content_type="text/plain", priority=3)
    await database.execute(INSERT, "orders", b"invoice", header, "1 hour", 5, 0)
    await database.execute(INSERT, "orders", b"late", header, "-1 hour", 2, 3)
    await database.execute(INSERT, "", b"odd\xff", header, "1 day", 2, 0)
    assert len((await duebell("delayed", "list")).json) == 9
    orders = [f"orders-{n}" for n in (1, 2, 1, 2, 3, 4, 5)]
    assert ids(await duebell("delayed", "list", "--exchange", "orders")) == orders
    chosen = ("--exchange", "orders", "--routing-key", "invoice", "--from", "+62m30s", "--to", "+2h")
    assert ids(await duebell("delayed", "list", *chosen)) == orders[4:]
    [first, second] = (await duebell("delayed", "list", "--refused")).json
    assert (first["refusals"], first["refused_because"], second["message_id"]) == (3, "nothing is bound", "orders-2")
    assert [m["routing_key"] for m in (await duebell("delayed", "list", "--exchange", "(default)")).json] == [
        "odd\\xff"
    ] * 2
    for selection in ((), ("--refused",), ("--exchange", "orders"), ("--routing-key", "invoice")):
        whole = [message["id"] for message in (await duebell("delayed", "list", *selection)).json]
        assert await follow(duebell, "delayed", "list", "--limit", "1", *selection) == whole, selection
    table = await duebell("delayed", "list", "--table", "--limit", "2", "--refused")
    assert "2 delayed messages" in table.out
    assert "The next: duebell delayed list --refused --limit 2 --after" in table.out
    [shown, _] = (await duebell("delayed", "show", "orders-1")).json
    assert (shown["body"], shown["properties"]["priority"]) == ("body", 3)
    assert shown["headers"] == {"x-delay": -1, "odd": {"base64": "/w=="}}
    for arguments, status, said in (
        (("show", "gone"), 1, "no delayed message 'gone' waits"),
        (("list", "--after", "x"), 2, "--after: 'x' is not a cursor"),
        (("cancel", "--yes"), 2, "say which: ids, or --exchange"),
        (("cancel", "a", "--refused", "--yes"), 2, "say which: ids, or --exchange"),
        (("release", "--exchange", "none", "--yes"), 1, "no delayed message matches"),
        (("cancel", "orders-1"), 1, "This cancels 2 delayed messages: say --yes to do it"),
    ):
        ended = await duebell("delayed", *arguments)
        assert (ended.status, said in ended.err) == (status, True), ended.err


def ids(ended: Any) -> list[str]:
    return [message["message_id"] for message in ended.json]


async def test_chosen_messages_are_released_and_cancelled_with_the_operators_name(
    site: Site, app: Application, database: Any, duebell: Operator
) -> None:
    async with a_delayed_sender(site) as sender, running_consumer(site), running_producer(site):
        for number in range(150):
            await sender.send(str(number).encode(), "now", message_id="m", headers={"x-delay": 3_600_000})
        await sender.send(b"later", "later", message_id="later", headers={"x-delay": 3_600_000})
        await wait_for_rows(database, 151)
        chosen = ("--exchange", sender.exchange, "--routing-key", "now")
        released = await duebell("delayed", "release", *chosen, "--limit", "120", "--yes")
        assert (released.status, "120 triggered" in released.out) == (0, True), released.err
        assert "More match: run it again." in released.out
        assert sorted(int(message.body) for message in await sender.hears(120)) == list(range(120))
        await wait_for_rows(database, 31)
        cancelled = await duebell("delayed", "cancel", "m", "--note", "tidy", "--yes")
        assert (cancelled.status, "30 cancelled" in cancelled.out) == (0, True), cancelled.err
        await database.execute("update delayed_messages set owner = 'another'")
        refused = await duebell("delayed", "release", "later", "--yes")
        assert (refused.status, "belongs to another user (1)" in refused.err) == (1, True), refused.err
    told = await database.fetch(
        "select what, count(*) from history where operator is not null group by what order by what"
    )
    assert [tuple(row) for row in told] == [("cancelled", 30), ("rejected", 1), ("triggered", 120)]


async def wait_for_rows(database: Any, number: int) -> None:
    async def look() -> bool:
        assert await database.fetchval("select count(*) from delayed_messages") == number
        return True

    await eventually(look)


def test_a_long_body_is_cut_and_one_that_is_no_text_is_base64() -> None:
    header = properties()
    text = "ä" * MAX_SHOWN_BODY
    assert describe_content(header, text.encode())["body"] == text[: MAX_SHOWN_BODY // 2]
    assert describe_content(header, b"x" + text.encode())["body"] == "x" + text[: MAX_SHOWN_BODY // 2 - 1]
    assert describe_content(header, b"\xff")["body_base64"] == "/w=="
    assert describe_content(header, b"")["body"] == ""
