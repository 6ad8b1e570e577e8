"""Runs a private RabbitMQ node on the loopback address, with a name, ports, a password, a cookie and a directory of its
own.

It runs beside any other node, a system-wide one included, and shares nothing with it: Erlang's port mapper (epmd),
which would otherwise stay behind as a daemon on the standard port, is a child of this process too. Ports and data live
as long as the object: they survive `stop`, `restart` and `kill`, and `close` removes them. Every new object starts
afresh.
"""

import signal
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path

from stack import processes, roles
from stack.directory import LOGS, Claim, claim
from stack.errors import StackError, StartError
from stack.ports import LOOPBACK, free_port
from stack.processes import Child, spawn
from stack.rabbitmq_node import write_node
from stack.stack_part import StackPart

# Each takes seconds; a machine with much other work to do may need minutes.
START_SECONDS = 300.0
STOP_SECONDS = 20.0
CTL_SECONDS = 300.0
ATTEMPTS = 3
MANAGEMENT = "rabbitmq_management"
# Debian's /usr/sbin/rabbitmq-server would switch to the system's own user and directories; this is the program itself.
PROGRAMS = Path("/usr/lib/rabbitmq/bin")
# "A method frame on channel 0", the first thing that a broker ready for clients says.
PROTOCOL_HEADER, GREETING = b"AMQP\x00\x00\x09\x01", b"\x01\x00\x00"


class RabbitMQ(StackPart):
    """`with RabbitMQ(directory) as rabbitmq:` runs one in `directory/rabbitmq`.

    `plugins` may name rabbitmq_management and rabbitmq_prometheus; `plugin_ports` then says where they answer. The
    services' users may use exchanges and queues whose names begin with the pattern `prefix`. `settings` are further
    lines of rabbitmq.conf. With `joins`, it becomes a member of the cluster of that other node, which must be running
    and must be closed later: the port mapper is its child."""

    def __init__(  # noqa: PLR0913  (each says something about the node that cannot be guessed)
        self,
        directory: Path,
        *,
        logs: Path | None = None,
        plugins: tuple[str, ...] = (),
        prefix: str = "",
        settings: Mapping[str, str] | None = None,
        joins: "RabbitMQ | None" = None,
    ) -> None:
        self.directory = directory.absolute() / "rabbitmq"
        self.log = (logs or directory / LOGS).absolute() / "rabbitmq.log"
        self.port = 0
        self.plugin_ports = dict.fromkeys(plugins, 0)
        self._joins = joins
        self.passwords: dict[str, str] = joins.passwords if joins else roles.new_passwords()
        self._prefix = prefix
        self._settings = settings or {}
        self._claim: Claim | None = None
        self.environment: dict[str, str] | None = None
        self._epmd: Child | None = None
        self._node: Child | None = None

    @property
    def url(self) -> str:
        """The address for the operator, who may do everything."""
        return self.url_of(roles.OPERATOR)

    def url_of(self, user: str) -> str:
        """Return the address for one of the users in `deploy/roles/rabbitmq.json`."""
        return f"amqp://{user}:{self.passwords[user]}@{LOOPBACK}:{self.port}/"

    def management_url_of(self, user: str) -> str:
        """Return the address of the management interface, which needs its plugin, for one of these users."""
        return f"http://{user}:{self.passwords[user]}@{LOOPBACK}:{self.plugin_ports[MANAGEMENT]}"

    @property
    def name(self) -> str:
        """The node's name in its cluster."""
        if self.environment is None:
            raise RuntimeError("RabbitMQ has not been started")
        return self.environment["RABBITMQ_NODENAME"]

    @property
    def pid(self) -> int:
        """The process id of the Erlang machine."""
        return self._running().pid

    def alive(self) -> bool:
        return self._node is not None and self._node.alive()

    def start(self) -> None:
        """Start the node and wait until it greets clients."""
        if self.environment is not None:
            return self._boot(self.environment)
        if not (PROGRAMS / "rabbitmq-server").exists():
            raise StackError(f"RabbitMQ is missing ({PROGRAMS}/rabbitmq-server).\n  what to do: run `make setup`")
        self._claim = claim(self.directory)
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.log.unlink(missing_ok=True)
        for _ in range(ATTEMPTS - 1):
            try:
                return self._first_boot(self._claim)
            except StartError as failure:
                # Between finding the ports and binding them, another process may have taken one.
                if not _says_port_taken(str(failure)):
                    raise
                self._claim.empty()
        return self._first_boot(self._claim)

    def stop(self) -> None:
        """Shut the node down in good order; the data stays."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End the node as a crash would: no connection is closed in order, nothing is flushed. Call
        `sync_queue_register` before.
        """
        self._end(signal.SIGKILL)

    def sync_queue_register(self) -> None:
        """Make sure that quorum queues declared just now survive a `kill`.

        RabbitMQ 3.10 saves the register of its quorum queues half a second late. A queue that is younger when the node
        is killed comes back without its messages, confirmed ones included, and without a leader: it does not answer.
        """
        self.ctl("eval", "ok = dets:sync(ra_directory_reverse).")

    def restart(self) -> None:
        self.stop()
        self.start()

    def pause(self) -> None:
        """Freeze the node: connections stay open and nothing answers."""
        self._running().freeze()

    def resume(self) -> None:
        self._running().send(signal.SIGCONT)

    def ctl(self, *arguments: str) -> str:
        """Run rabbitmqctl on this node and return what it prints."""
        outcome = subprocess.run(
            [PROGRAMS / "rabbitmqctl", "--quiet", *arguments],
            env=self.environment,
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=CTL_SECONDS,
        )
        if outcome.returncode != 0:
            raise StackError(f"rabbitmqctl {' '.join(arguments)} failed:\n{outcome.stdout}{outcome.stderr}")
        return outcome.stdout

    def close(self) -> None:
        """End the node and remove its data. It is killed, because no data is left to shut down for."""
        self.kill()
        if self._epmd is not None:
            self._epmd.stop()
            self._epmd = None
        if self._claim is not None:
            self._claim.empty()
            self._claim.release()
            self._claim = None
            self.environment = None

    def _first_boot(self, claimed: Claim) -> None:
        """Find ports, write the node's files, start its port mapper and the node itself."""
        self.port = free_port()
        self.plugin_ports = {plugin: free_port() for plugin in self.plugin_ports}
        users = roles.rabbitmq_definitions(self.passwords, self._prefix)
        joins = self._joins.environment if self._joins else None
        environment = write_node(claimed.path, self.port, users, self.plugin_ports, self._settings, joins=joins)
        if self._joins is None:
            self._start_port_mapper(environment)
        self._boot(environment)
        self.environment = environment

    def _start_port_mapper(self, environment: Mapping[str, str]) -> None:
        if self._epmd is not None:
            self._epmd.stop()
        self._epmd = self._spawn("epmd", ["epmd", "-address", LOOPBACK], environment)
        epmd, epmd_port = self._epmd, int(environment["ERL_EPMD_PORT"])
        decided = processes.wait_until(lambda: not epmd.alive() or _answers(epmd_port), START_SECONDS)
        if not decided or not epmd.alive():
            raise self._failure("start its port mapper (epmd)")

    def _boot(self, environment: dict[str, str]) -> None:
        node = self._spawn("rabbitmq", [PROGRAMS / "rabbitmq-server"], environment)
        self._node = node
        decided = processes.wait_until(
            lambda: not node.alive() or _answers(self.port, PROTOCOL_HEADER, GREETING), START_SECONDS
        )
        if not decided or not node.alive():
            self.kill()
            raise self._failure("start")

    def _spawn(self, name: str, command: list[str | Path], environment: Mapping[str, str]) -> Child:
        if self._claim is None:
            raise RuntimeError("RabbitMQ has no directory yet")
        return spawn(name, command, records=self._claim.records, log=self.log, env=environment, cwd=Path("/"))

    def _end(self, first: signal.Signals) -> None:
        if self._node is not None:
            self._node.stop(first, STOP_SECONDS)
            self._node = None

    def _running(self) -> Child:
        if self._node is None:
            raise RuntimeError("RabbitMQ is not running")
        return self._node

    def _failure(self, doing: str) -> StartError:
        return StartError(
            f"RabbitMQ could not {doing}.",
            log=self.log,
            next_step="read the log; a full disk, no memory left or a broken installation (`apt-get install "
            "--reinstall rabbitmq-server`) are the usual causes. Every start is a fresh one, so trying again is safe.",
        )


def _answers(port: int, say: bytes = b"", expect: bytes = b"") -> bool:
    """Tell whether a process listens on the port and answers the question as expected."""
    try:
        with socket.create_connection((LOOPBACK, port), timeout=2) as connection:
            connection.sendall(say)
            return connection.recv(len(expect)).startswith(expect) if expect else True
    except OSError:
        return False


def _says_port_taken(message: str) -> bool:
    return any(words in message.lower() for words in ("eaddrinuse", "address already in use", "address in use"))
