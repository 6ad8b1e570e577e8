"""The example receiver believes nothing that is not signed."""

from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from standardwebhooks import Webhook

from examples.receiver.__main__ import Receiver

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@pytest.fixture
async def caller() -> AsyncIterator["TestClient[web.Request, web.Application]"]:
    app = web.Application()
    app.router.add_post("/hook", Receiver(Webhook(SECRET)).receive)
    async with TestClient(TestServer(app)) as client:
        yield client


@pytest.mark.parametrize("signature", ["", "v1", "v1,", "v1,!!!", "v2,x y", "v1,\u00e9"])
async def test_whatever_is_not_a_signature_is_answered_with_401(
    caller: "TestClient[web.Request, web.Application]", signature: str
) -> None:
    for timestamp in ("1", "soon"):
        headers = {"webhook-id": "event-1", "webhook-timestamp": timestamp, "webhook-signature": signature}
        answer = await caller.post("/hook", data=b"{}", headers=headers)
        assert answer.status == 401
