"""The private RabbitMQ node: beside any other, on loopback only, with its messages kept over a crash."""

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import aio_pika
import pytest

from stack import rabbitmq as module
from stack.errors import StackError, StartError
from stack.ports import LOOPBACK
from stack.rabbitmq import RabbitMQ
from tests.stack.living_processes import no_process_has_text, processes_with_text
from tests.support.eventually import PATIENCE

pytestmark = pytest.mark.xdist_group("rabbitmq")  # one worker: its tests share what takes long to start
STANDARD_PORTS = (4369, 5432, 5672, 15672, 25672)


@pytest.fixture(scope="module")
def _standard_ports_taken() -> Iterator[None]:
    """Bind those standard ports of RabbitMQ that are still free."""
    with ExitStack() as holding:
        for port in STANDARD_PORTS:
            holder = holding.enter_context(socket.socket())
            try:
                holder.bind((LOOPBACK, port))
            except OSError:
                continue
            holder.listen()
        yield


@pytest.fixture(scope="module")
def nodes(_standard_ports_taken: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[RabbitMQ]]:
    """Two nodes that start at the same moment."""
    both = [RabbitMQ(tmp_path_factory.mktemp("a node")) for _ in range(2)]
    try:
        with ThreadPoolExecutor() as together:
            list(together.map(RabbitMQ.start, both))
        yield both
    finally:
        for node in both:
            node.close()
    for node in both:
        assert no_process_has_text(str(node.directory))


@pytest.fixture
def node(nodes: list[RabbitMQ]) -> RabbitMQ:
    return nodes[0]


async def publish(url: str, queue: str, body: bytes) -> None:
    async with await aio_pika.connect(url, timeout=PATIENCE) as connection, connection.channel() as channel:
        await channel.declare_queue(queue, durable=True, arguments={"x-queue-type": "quorum"})
        message = aio_pika.Message(body, delivery_mode=aio_pika.DeliveryMode.PERSISTENT)
        await channel.default_exchange.publish(message, queue, timeout=10)


async def take(url: str, queue: str) -> bytes:
    async with await aio_pika.connect(url, timeout=PATIENCE) as connection, connection.channel() as channel:
        declared = await channel.declare_queue(queue, passive=True)
        message = await declared.get(no_ack=True, timeout=20)
        assert message is not None
        return message.body


async def test_two_nodes_run_side_by_side_and_share_nothing(nodes: list[RabbitMQ]) -> None:
    await publish(nodes[0].url, "mine", b"one")

    assert "mine" in nodes[0].ctl("list_queues", "name")
    assert "mine" not in nodes[1].ctl("list_queues", "name")
    assert await take(nodes[0].url, "mine") == b"one"


async def test_messages_and_address_survive_a_crash(node: RabbitMQ) -> None:
    url, pid = node.url, node.pid
    await publish(url, "kept", b"still here")
    node.sync_queue_register()

    node.kill()
    assert not node.alive()
    node.start()

    assert node.url == url
    assert node.pid != pid
    assert await take(url, "kept") == b"still here"


async def test_a_paused_node_does_not_answer_until_it_is_resumed(node: RabbitMQ) -> None:
    node.pause()
    try:
        with pytest.raises(TimeoutError):
            await aio_pika.connect(node.url, timeout=0.5)
    finally:
        node.resume()
    await publish(node.url, "after", b"awake")


def test_every_listener_is_on_the_loopback_address(nodes: list[RabbitMQ]) -> None:
    for node in nodes:
        family = processes_with_text(str(node.directory))
        assert node.pid in family
        assert _listening_addresses(family) <= {"127.0.0.1", "::1"}


def test_a_failing_command_says_why(node: RabbitMQ) -> None:
    # RabbitMQ 3.10 says "Queue not found", and 4.3 "No such queue was found".
    with pytest.raises(StackError, match=r"rabbitmqctl delete_queue nowhere failed:(.|\n)*[Qq]ueue .*found"):
        node.ctl("delete_queue", "nowhere")


def test_a_failing_start_shows_the_log_and_what_to_do_and_leaves_nothing(
    directory: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "rabbitmq-server"
    broken.write_text("#!/bin/sh\necho the mill is broken\nexit 3\n")
    broken.chmod(0o755)
    monkeypatch.setattr(module, "PROGRAMS", tmp_path)

    with pytest.raises(StartError) as failure, RabbitMQ(directory):
        pass

    message = str(failure.value)
    assert message.startswith("RabbitMQ could not start.")
    assert "the mill is broken" in message
    assert "what to do:" in message
    assert no_process_has_text(str(directory))


def test_a_missing_installation_says_how_to_get_one(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PROGRAMS", directory / "nowhere")

    with pytest.raises(StackError, match="make setup"), RabbitMQ(directory):
        pass


def _listening_addresses(pids: set[int]) -> set[str]:
    """The local addresses on which any of these processes listens for TCP connections."""
    sockets = {
        link.readlink().name.removeprefix("socket:[").removesuffix("]")
        for pid in pids
        for link in Path(f"/proc/{pid}/fd").iterdir()
        if link.is_symlink() and str(link.readlink()).startswith("socket:")
    }
    addresses = set()
    for table, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in sockets:
                addresses.add(_decode(fields[1].split(":")[0], family))
    return addresses


def _decode(address: str, family: socket.AddressFamily) -> str:
    """The kernel prints addresses as words of four bytes, each in the machine's own order."""
    words = [bytes.fromhex(address[start : start + 8])[::-1] for start in range(0, len(address), 8)]
    return socket.inet_ntop(family, b"".join(words))
