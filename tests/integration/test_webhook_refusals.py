"""The consumer refuses a webhook that delivery would never call, by the same settings as delivery."""

from typing import Any

from tests.support.application import Application
from tests.support.builders import a_request
from tests.support.services import running_consumer
from tests.support.stores import Site


async def outcome(app: Application, job_id: str, **webhook: str) -> tuple[str, list[str]]:
    reply: dict[str, Any] = await app.request(a_request(id=job_id, webhook=webhook))
    return reply["outcome"], [error.split(":")[0] for error in reply["errors"]]


async def test_a_consumer_that_is_told_nothing_refuses_private_addresses_and_takes_any_secret(
    site: Site, app: Application
) -> None:
    async with running_consumer(site, webhook_allow_networks=""):
        assert await outcome(app, "inside", url="http://10.0.0.1/") == ("rejected", ["webhook.url"])
        assert await outcome(app, "here", url="http://localhost:8000/") == ("rejected", ["webhook.url"])
        assert await outcome(app, "signed", url="https://a.example/", secret="any") == ("accepted", [])


async def test_a_consumer_that_is_told_of_networks_ports_and_secrets_takes_those(site: Site, app: Application) -> None:
    told = {
        "webhook_allow_networks": "10.0.0.0/8",
        "webhook_allow_ports": "443",
        "webhook_secret_names": "billing",
    }
    async with running_consumer(site, **told):
        assert await outcome(app, "a", url="https://10.0.0.1/", secret="billing") == ("accepted", [])
        assert await outcome(app, "b", url="https://10.0.0.1/", secret="biling") == ("rejected", ["webhook.secret"])
        assert await outcome(app, "c", url="http://10.0.0.1/") == ("rejected", ["webhook.url"])
