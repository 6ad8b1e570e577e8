"""The page of delayed messages: what waits is found, published now and cancelled, in the operator's name."""

import asyncio
import re

from tests.console.running_console import OPERATOR, VIEWER, Answered, RunningConsole
from tests.support.eventually import eventually

INSERT = """
insert into delayed_messages (exchange, routing_key, header, body, due_at, message_id, refusals, retry_at,
                              refused_because)
select $1, 'invoice', '\\x0000', 'body', now() + interval '1 day', $1 || '-' || n, $2::int,
       case when $2 > 0 then now() + interval '1 day' end, case when $2 > 0 then 'no queue is bound' end
  from generate_series(1, 3) as n returning id
"""


def read(console: RunningConsole, path: str, user: str = OPERATOR, form: dict[str, str] | None = None) -> Answered:
    return console.ask(path, form, {"Cookie": console.session_of(user)})


def test_what_waits_is_found_published_now_and_cancelled(console: RunningConsole) -> None:
    for_tea, for_cake = f"{console.site.prefix}tea", f"{console.site.prefix}cake"
    tea = [row["id"] for row in console.fetch(INSERT, for_tea, 0)]
    cake = [row["id"] for row in console.fetch(INSERT, for_cake, 2)]
    page = read(console, f"/delayed?exchange={for_tea}&key=invoice")
    assert page.status == 200
    assert re.findall(r'name="id" value="(delayed#\d+)"', page.text) == [f"delayed#{number}" for number in tea]
    refused = read(console, "/delayed?refused=yes").text
    assert re.findall(r'value="delayed#(\d+)"', refused) == [str(number) for number in cake]
    assert "no queue is bound (2)" in refused
    seen_by_viewer = read(console, "/delayed", VIEWER).text
    assert (for_cake in seen_by_viewer, "data-mark" in seen_by_viewer) == (True, False)

    [token] = set(re.findall(r'name="form_token" value="([^"]+)"', page.text))

    def act(number: int, action: str) -> str:
        form = {"form_token": token, "action": action, "note": "tidy", "id": f"delayed#{number}"}
        return read(console, "/delayed", form=form).text

    assert "1 cancelled" in act(tea[0], "cancel")
    assert "1 triggered" in act(tea[1], "release")
    assert "no message of this number waits" in act(tea[0], "cancel")
    assert "There is no such action" in act(tea[0], "drop")
    told = console.fetch(
        "select what, operator, note from history where job_id like $1 and what <> 'refused'", "%tea-_"
    )
    assert sorted(tuple(row.values()) for row in told) == [
        ("cancelled", OPERATOR, "tidy"), ("triggered", OPERATOR, None),
    ]  # fmt: skip

    async def is_tried() -> bool:
        rows = await asyncio.to_thread(
            console.fetch, "select refused_because from delayed_messages where id = $1", tea[1]
        )
        return bool(rows[0]["refused_because"] == "the exchange is not there")

    asyncio.run(eventually(is_tried))
    console.fetch("delete from delayed_messages")
