"""What the services say: a JSON object per line, with the ids that lead to a job, and without secrets.
What delivery keeps to itself is shown in its own tests.
"""

import re
from pathlib import Path
from typing import Any

from tests.support.application import Application
from tests.support.builders import a_request, in_seconds
from tests.support.eventually import eventually
from tests.support.services import ServiceProcess, service_process
from tests.support.stores import Site

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
CANARIES = ["payload-canary", "header-canary", "url-canary"]
PRIVATE: dict[str, Any] = {
    "payload": {"secret": "payload-canary"},
    "webhook": {"url": "https://example.com/?token=url-canary", "headers": {"Authorization": "header-canary"}},
}


async def said(service: ServiceProcess, event: str) -> dict[str, Any]:
    async def look() -> list[dict[str, Any]]:
        return service.said(event)

    return (await eventually(look))[0]


async def test_lines_name_the_job_and_its_trace_and_keep_its_secrets(
    site: Site, app: Application, database: Any, tmp_path: Path
) -> None:
    await database.execute("alter table jobs add constraint no_thirteen check (id <> 'thirteen')")
    with (
        service_process("consumer", site, tmp_path, LOG_LEVEL="debug") as consumer,
        service_process("producer", site, tmp_path, LOG_LEVEL="debug") as producer,
    ):
        traced = {"headers": {"traceparent": TRACE}}
        await app.ask(a_request(id="late", at=in_seconds(-120), **PRIVATE), **traced)
        await app.ask(a_request(id="wrong", timezone="Mars/Olympus", **PRIVATE), **traced)
        await app.ask(a_request(id="thirteen", **PRIVATE))
        await app.ask(b'{"id": "broken", "payload": "payload-canary')
        skipped = {"misfire": "skip", "misfire_grace_seconds": 0}
        await app.ask(a_request(id="skipped", at=in_seconds(-120), **skipped, **PRIVATE), **traced)

        late = await said(producer, "fired_late")
        [event] = await app.hears(1)
        assert (late["id"], late["idempotency_key"]) == ("late", event.content["idempotency_key"])
        assert (late["traceparent"], late["reason"]) == (TRACE, "asked for a moment in the past")
        dropped = await said(producer, "misfire_dropped")
        assert (dropped["id"], dropped["traceparent"]) == ("skipped", TRACE)
        rejected = await said(consumer, "command_rejected")
        assert (rejected["id"], rejected["traceparent"], rejected["parked"]) == ("wrong", TRACE, True)
        await said(consumer, "batch_split")

    passwords = re.findall(r"://\w+:(\w+)@", " ".join(url for own in site.own.values() for url in own.values()))
    for service in (consumer, producer):
        text = service.log.read_text()
        assert [secret for secret in (*CANARIES, *passwords) if secret in text] == []
        assert len(service.lines()) == len(text.splitlines()), "one JSON object per line"
        assert all({"event", "level", "service", "timestamp"} <= line.keys() for line in service.lines())
