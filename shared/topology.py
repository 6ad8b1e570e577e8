"""`python -m shared.topology` declares the exchanges and queues: see shared/amqp/topology.py."""

import asyncio
import sys

from pydantic import Field
from pydantic_settings import BaseSettings

from shared.amqp.connection import BROKER_ERRORS, CONNECT_TIMEOUT, connect_to_any
from shared.amqp.topology import declare_topology
from shared.contract.names import Names
from shared.runtime.settings import AmqpUrl, DelayTargets, load_settings


class _TopologySettings(BaseSettings):
    amqp_url: AmqpUrl = Field(repr=False)
    amqp_prefix: str = Field(default="", max_length=60)
    delay_exchanges: DelayTargets = ()


async def _declare(settings: _TopologySettings) -> None:
    async with (
        asyncio.timeout(60),
        await connect_to_any(settings.amqp_url, "duebell-topology", CONNECT_TIMEOUT) as connection,
        connection.channel() as channel,
    ):
        await declare_topology(channel, Names(settings.amqp_prefix, settings.delay_exchanges))


def main() -> None:
    settings = load_settings(_TopologySettings)
    try:
        asyncio.run(_declare(settings))
    except BROKER_ERRORS as error:
        sys.exit(f"declaring failed: {type(error).__name__}: {error}")
    sys.stderr.write("exchanges and queues are declared\n")


if __name__ == "__main__":
    main()
