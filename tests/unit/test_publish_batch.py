"""The broker numbers what is published on a channel, and its verdicts name the numbers: ours have to be the same."""

from types import SimpleNamespace
from typing import cast

import pytest
from aiormq.channel import Channel

from shared.outgoing import Outgoing
from shared.publish_batch import PublishBatch


def a_channel() -> Channel:
    """As much of one as a batch looks at before it is sent."""
    return cast("Channel", SimpleNamespace(delivery_tag=7, number=1, max_content_size=1000))


async def test_what_is_published_is_counted() -> None:
    channel = a_channel()
    PublishBatch(channel, [Outgoing("", "queue", b"{}")] * 3)
    assert channel.delivery_tag == 10


async def test_what_cannot_be_written_is_not_counted() -> None:
    channel = a_channel()
    with pytest.raises(ValueError, match="range"):
        PublishBatch(channel, [Outgoing("", "queue", b"{}"), Outgoing("", "queue", b"{}", priority=1000)])
    assert channel.delivery_tag == 7
