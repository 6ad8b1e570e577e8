"""A direct reply address that RabbitMQ made is answered, a made-up one never."""

from base64 import b64encode

import pytest

from shared.amqp.publisher import can_be_answered

NODE = b"w\x0erabbit@machine"
PID = b"\x83X" + NODE[:1] + bytes([len(NODE) - 2]) + NODE[2:] + bytes(12)


def direct(process: bytes, key: bytes = b"key") -> str:
    return f"amq.rabbitmq.reply-to.{b64encode(process).decode()}.{b64encode(key).decode()}"


@pytest.mark.parametrize("address", ["a-queue", "amq.rabbitmq.reply-to", "amq.gen-x", " ", "q" * 255, direct(PID)])
def test_an_address_can_be_answered(address: str) -> None:
    assert can_be_answered(address)


@pytest.mark.parametrize(
    "address",
    [
        None, "", "amq.rabbitmq.reply-to.", "amq.rabbitmq.reply-to.garbage", "amq.rabbitmq.reply-to.made.up",
        "amq.rabbitmq.reply-to..", "amq.rabbitmq.reply-to.é.é", "amq.rabbitmq.reply-to.AAAA.AAAA", direct(b""),
        direct(b"\x83"),
        direct(b"\x83X"), direct(PID[:-1]), direct(PID + b"\0"), direct(b"\x82" + PID[1:]), direct(b"\x83h" + PID[2:]),
        direct(PID, b""),
        direct(PID) + ".more", direct(PID)[:-1], direct(b"\x83m\0\0\0\x01x"), direct(b"\x83Xw\xff" + bytes(12)),
    ],
)  # fmt: skip
def test_an_address_cannot_be_answered(address: str | None) -> None:
    assert not can_be_answered(address)
