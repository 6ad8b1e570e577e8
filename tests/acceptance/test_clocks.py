"""The machine's clock may be wrong: what is due, and when a retry is, is for Postgres' clock to say."""

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from shared.contract.fields import parse_date_time
from tests.acceptance.delivery.processes import delivery_process
from tests.support.application import Application
from tests.support.builders import a_request, in_seconds
from tests.support.delivery_rows import wait_for_delivery
from tests.support.receiver import a_receiver, answering
from tests.support.services import service_process
from tests.support.stores import Site

LIBRARY = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)


@pytest.mark.skipif(LIBRARY is None, reason="faketime is not installed (make extras does it)")
@pytest.mark.parametrize("skew", ["+1h", "-1h"])
async def test_services_an_hour_off_ring_neither_early_nor_late(
    site: Site, app: Application, database: Any, tmp_path: Path, skew: str
) -> None:
    wrong = {"LD_PRELOAD": str(LIBRARY), "FAKETIME": skew, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    async with a_receiver(answering(503, 200)) as receiver:
        with (
            service_process("consumer", site, tmp_path, **wrong, WEBHOOK_ALLOW_NETWORKS="127.0.0.0/8") as consumer,
            service_process("producer", site, tmp_path, **wrong) as producer,
            delivery_process(site, tmp_path, **wrong) as delivery,
        ):
            # Only once it has answered are the others likely to be up, too.
            await app.request(a_request(id="warm-up", at=in_seconds(0)))
            await app.hears(1, within=60)
            started = time.monotonic()
            due_at = datetime.now(UTC) + timedelta(seconds=3)
            request = a_request(at=due_at.isoformat(), webhook={"url": receiver.url})
            assert (await app.request(request))["outcome"] == "accepted"
            event = (await app.hears(2))[1]
            heard_at = datetime.now(UTC)
            assert parse_date_time(event.content["due_at"]) == due_at
            assert parse_date_time(event.content["fired_at"]) >= due_at, "by Postgres' clock"
            assert due_at <= heard_at
            assert time.monotonic() - started < 1800, "nowhere near an hour late"
            await wait_for_delivery(database, "job-1", "COMPLETED", within=30)
            assert len(receiver.calls) == 2, "the retry was not an hour away either"
            for service in (consumer, producer, delivery):
                believes = parse_date_time(service.lines()[0]["timestamp"])
                assert abs(believes - datetime.now(UTC)) > timedelta(minutes=30), "its clock is wrong indeed"
