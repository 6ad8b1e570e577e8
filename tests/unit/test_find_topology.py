"""What a service whose user may not declare does at its start: it looks for what its user may see."""

import pytest
from aiormq.exceptions import ChannelAccessRefused, ChannelNotFoundEntity

from shared.amqp.topology import Kind, find_topology
from shared.contract.names import Names
from shared.errors import TopologyMissing

NAMES = Names("a.")


async def test_every_exchange_and_queue_is_looked_for() -> None:
    seen: set[tuple[Kind, str]] = set()

    async def look(name: str, kind: Kind) -> None:
        seen.add((kind, name))

    await find_topology(look, NAMES)
    assert seen == {("exchange", name) for name in NAMES.exchanges} | {("queue", name) for name in NAMES.queues}


async def test_a_name_that_the_user_has_no_right_to_is_passed_over() -> None:
    """RabbitMQ 4.3 refuses passive declarations of a consumer of all names but two."""
    own = {NAMES.inbox, NAMES.parking}

    async def look(name: str, kind: Kind) -> None:
        if name not in own:
            raise ChannelAccessRefused(f"configure access to {kind} '{name}' refused")

    await find_topology(look, NAMES)


async def test_a_name_that_is_missing_among_those_that_the_user_may_see_is_said() -> None:
    async def look(name: str, kind: Kind) -> None:
        if name == NAMES.inbox:
            raise ChannelNotFoundEntity(f"no {kind} '{name}'")
        raise ChannelAccessRefused

    with pytest.raises(TopologyMissing, match=r"a\.scheduler\.inbox is not there"):
        await find_topology(look, NAMES)
