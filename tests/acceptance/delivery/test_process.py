"""The delivery service as a process: what it shows, what it keeps to itself, how it starts and stops."""

import asyncio
import base64
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession

from delivery.store.replay import REPLAY
from stack.ports import free_port
from tests.acceptance.delivery.processes import delivery_process
from tests.support.application import Application, an_application
from tests.support.delivery_rows import wait_for_deliveries, wait_for_delivery
from tests.support.due_events import a_due, publish_due
from tests.support.eventually import PATIENCE, eventually
from tests.support.health import is_ready
from tests.support.proxies import a_proxy
from tests.support.receiver import a_receiver, answering
from tests.support.services import ROOT, service_process
from tests.support.stores import Site

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
CANARIES = ["MfKQ9r8GKYqrTwjUPD8", "url-canary", "header-canary", "payload-canary", "answer-canary"]


async def metrics_of(port: int) -> dict[str, float]:
    async with ClientSession() as session, session.get(f"http://127.0.0.1:{port}/metrics") as response:
        text = await response.text()
    pairs = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, value in pairs}


async def test_it_counts_what_it_does_and_keeps_its_secrets(site: Site, database: Any, tmp_path: Path) -> None:
    port = free_port()
    secrets = tmp_path / "secrets.json"
    secrets.write_text(json.dumps({"billing": SECRET}))
    environment = {"METRICS_PORT": str(port), "WEBHOOK_SECRETS_FILE": str(secrets)}
    async with (
        an_application(site, listen_to=None) as app,
        a_receiver() as receiver,
        a_receiver(answering(503, headers={"X": "answer-canary"})) as failing,
    ):
        with delivery_process(site, tmp_path, **environment) as service:
            await eventually(lambda: is_ready(port))
            private: dict[str, Any] = {
                "payload": {"p": "payload-canary"},
                "webhook": {"headers": {"Authorization": "header-canary"}, "secret": "billing", "max_retries": 1},
            }
            good = a_due("good", f"{receiver.url}?token=url-canary", **json.loads(json.dumps(private)))
            bad = a_due("bad", f"{failing.url}?token=url-canary", **json.loads(json.dumps(private)))
            refused = a_due("refused", "http://10.0.0.1/?token=url-canary", **json.loads(json.dumps(private)))
            await publish_due(app, good, good, bad, refused, b"payload-canary")
            await wait_for_delivery(database, "good", "COMPLETED")
            await wait_for_deliveries(database, 2, "FAILED")

            async def counted() -> dict[str, float]:
                metrics = await metrics_of(port)
                assert metrics["delivery_outcomes_announced_total"] == 3
                assert metrics["delivery_events_parked_total"] == 1
                return metrics

            metrics = await eventually(counted)
            assert metrics["deliveries_stored_total"] == 3
            assert metrics["deliveries_duplicate_total"] == 1
            assert metrics['deliveries_total{outcome="completed"}'] == 1
            assert metrics['deliveries_total{outcome="failed"}'] == 2
            assert metrics['delivery_attempts_total{result="2xx"}'] == 1
            assert metrics['delivery_attempts_total{result="5xx"}'] == 2
            assert metrics['delivery_attempts_total{result="forbidden_address"}'] == 1
            assert metrics["delivery_retries_total"] == 1
            assert metrics["delivery_leases_lost_total"] == 0
            assert metrics["deliveries_in_flight"] == 0
            assert metrics["delivery_breakers_open"] == 0
            labels = set(re.findall(r'(\w+)="', "".join(metrics)))
            assert labels <= {"outcome", "result", "change", "verdict", "le", "loop", "stage", "dependency"}
            assert service.terminate() == 0
    assert receiver.calls[0].headers["webhook-signature"].startswith("v1,")
    output = service.log.read_text()
    for canary in CANARIES:
        assert canary not in output
    about_deliveries = {"delivered", "delivery_retry", "delivery_failed", "duplicate_dropped"}
    seen = [line for line in service.lines() if line["event"] in about_deliveries]
    assert {line["event"] for line in seen} == about_deliveries
    keys = {event["idempotency_key"] for event in (good, bad, refused)}
    assert {line["idempotency_key"] for line in seen} == keys


async def test_an_orderly_stop_loses_and_repeats_nothing(
    site: Site, app: Application, database: Any, tmp_path: Path
) -> None:
    async with a_receiver() as receiver:
        await publish_due(app, *(a_due(f"j{n}", receiver.url) for n in range(200)))
        with delivery_process(site, tmp_path, MAX_IN_FLIGHT="4", BATCH_SIZE="20") as service:
            await receiver.called(30)
            # In a thread: the receiver must go on answering meanwhile.
            assert await asyncio.to_thread(service.terminate) == 0
            assert service.said("stopped")
        with delivery_process(site, tmp_path):
            await wait_for_deliveries(database, 200)
        assert len(receiver.calls) == len(receiver.effects) == 200


async def test_all_calls_go_through_the_proxy_whose_password_is_in_no_log(
    site: Site, app: Application, database: Any, tmp_path: Path
) -> None:
    password = "canary-of-the-proxy"
    async with a_receiver() as receiver, a_proxy(f"duebell:{password}") as (proxy, address):
        settings = {"WEBHOOK_PROXY": address, "WEBHOOK_ALLOW_NETWORKS": "", "PYTHONASYNCIODEBUG": "1"}
        with delivery_process(site, tmp_path, **settings) as service:
            there, once = f"shop.example:{receiver.port}", {"max_retries": 0}
            await publish_due(
                app,
                a_due("good", f"http://{there}/hook"),
                a_due("no-tls", f"https://{there}/hook", webhook=once),
                a_due("inside", receiver.url),
            )
            await wait_for_delivery(database, "good", "COMPLETED")
            assert (await wait_for_delivery(database, "no-tls", "FAILED"))["failure_reason"] == "tls"
            assert (await wait_for_delivery(database, "inside", "FAILED"))["failure_reason"] == "forbidden_address"
        wrong = {**settings, "WEBHOOK_PROXY": address.replace("duebell:", "another:")}
        with delivery_process(site, tmp_path, **wrong) as refused:
            await publish_due(app, a_due("refused", f"http://{there}/hook", webhook=once))
            assert (await wait_for_delivery(database, "refused", "FAILED"))["failure_reason"] == "connect"
        assert len(receiver.calls) == 1
        assert {head.split(" ")[0] for head in proxy.asked} == {"POST", "CONNECT"}
    for output in (service.log.read_text(), refused.log.read_text()):
        for user in ("duebell", "another"):
            assert base64.b64encode(f"{user}:{password}".encode()).decode() not in output
        assert password not in output


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (
            {"WEBHOOK_SECRETS": '{"billing": "whsec_dG9vc2hvcnQ="}'},
            "WEBHOOK_SECRETS: billing: a secret has 24 to 64 bytes, this one 8",
        ),
        (
            {"WEBHOOK_SECRETS": json.dumps({"billing": SECRET}), "WEBHOOK_SECRET_NAMES": "billing,shop,crm"},
            "WEBHOOK_SECRET_NAMES: crm, shop: neither WEBHOOK_SECRETS nor WEBHOOK_SECRETS_FILE has it, and consumers "
            "take requests that need it",
        ),
        (
            {"WEBHOOK_CLIENT_CERT": "/nowhere/duebell.pem"},
            "WEBHOOK_CLIENT_CERT: cannot be read: No such file or directory",
        ),
        (
            {"WEBHOOK_CLIENT_KEY": "/nowhere/duebell.key"},
            "WEBHOOK_CLIENT_KEY: is set, and WEBHOOK_CLIENT_CERT is not",
        ),
        (
            {"WEBHOOK_PROXY": "http://u:canary@proxy/"},
            "WEBHOOK_PROXY: is not an address such as http://user:password@proxy.example:3128",
        ),
    ],
)
def test_settings_that_cannot_be_used_end_it_with_one_line(settings: dict[str, str], says: str) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "delivery"],
        cwd=ROOT,
        env={"DATABASE_URL": "postgresql://u:p@127.0.0.1:1/d", "AMQP_URL": "amqp://127.0.0.1:1/", **settings},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert result.returncode == 2
    assert result.stderr == f"{says}\n"


async def test_the_example_receiver_keeps_the_first_of_each_key(
    site: Site, app: Application, database: Any, tmp_path: Path
) -> None:
    port = free_port()
    settings = {"RECEIVER_PORT": str(port), "RECEIVER_SECRET": SECRET}
    with service_process("examples.receiver", settings, tmp_path) as receiver:

        async def listening() -> bool:
            try:
                async with ClientSession() as session, session.get(f"http://127.0.0.1:{port}/healthz") as response:
                    return response.status == 200
            except OSError:
                return False

        await eventually(listening)
        url = f"http://127.0.0.1:{port}/hook"
        with delivery_process(site, tmp_path, WEBHOOK_SECRETS=json.dumps({"billing": SECRET})):
            signed, unsigned = a_due("signed", url, webhook={"secret": "billing"}), a_due("unsigned", url)
            await publish_due(app, signed, unsigned)
            await wait_for_delivery(database, "signed", "COMPLETED")
            assert (await wait_for_delivery(database, "unsigned", "FAILED"))["failure_reason"] == "http_401"
            # The same call once more, as after a crash that lost the record of the first.
            await database.execute(REPLAY.replace("'FAILED'", "'COMPLETED'"), [1, 2], None, None)
            await wait_for_deliveries(database, 2)
    lines = [line for line in receiver.log.read_text().splitlines() if "event-" in line]
    assert [line.split("  ")[1].strip() for line in lines if signed["idempotency_key"] in line] == ["first", "again x2"]
    assert any("REFUSED" in line and unsigned["idempotency_key"] in line for line in lines)
