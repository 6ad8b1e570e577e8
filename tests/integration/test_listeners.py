"""Which queues listen, by RabbitMQ's management interface, with the rights of the reader."""

import aio_pika
import pytest

from shared.why.facts import Listener
from shared.why.listeners import ManagementError, read_listeners
from stack.roles import READER
from tests.support.application import Application
from tests.support.eventually import eventually
from tests.support.stores import Site, Stores
from tests.unit.why.facts import a_job


async def test_the_queues_that_get_a_jobs_events_are_told(stores: Stores, site: Site, app: Application) -> None:
    if stores.rabbitmq is None:
        pytest.skip("these stores have no management interface whose address is known")
    url, full, audit = stores.rabbitmq.management_url_of(READER), f"{site.prefix}full", f"{site.prefix}audit"
    await app.binds(full, "due.event.money", **{"x-max-length": 1})
    await app.binds(audit, "due.event.#")
    await app.binds(f"{site.prefix}other", "due.event.tea")
    await app.channel.default_exchange.publish(aio_pika.Message(b""), full)

    async def look() -> bool:
        listeners = await read_listeners(url, site.amqp_url, site.names, a_job(topic="money"))
        by_name = {one.queue: one for one in listeners}
        assert by_name[full] == Listener(queue=full, messages=1, max_messages=1)
        assert by_name[full].is_full
        assert by_name[audit] == Listener(queue=audit, messages=0, max_messages=None)
        assert f"{site.prefix}other" not in by_name
        return True

    await eventually(look)  # the interface counts every five seconds


async def test_an_interface_that_cannot_be_asked_is_told_in_a_few_words(stores: Stores, site: Site) -> None:
    if stores.rabbitmq is None:
        pytest.skip("these stores have no management interface whose address is known")
    url = stores.rabbitmq.management_url_of(READER)
    host = url.rpartition("@")[2]
    for wrong, says in {
        f"http://stranger:wrong@{host}": "it answered 401",
        "http://127.0.0.1:1": "ConnectError",
        f"{url}/nowhere": "it answered 40",
    }.items():
        with pytest.raises(ManagementError, match=says):
            await read_listeners(wrong, site.amqp_url, site.names, a_job(topic="money"))
