"""The files and the environment of a private RabbitMQ node.

Everything that a node would look for in the system's places, or share with other nodes through well-known names and
ports, is given here: configuration, plugins, data, log, cookie, port mapper, name resolution."""

import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from stack.ports import LOOPBACK, free_port

COOKIE = ".erlang.cookie"
# Erlang's own connections, too, on the loopback address alone.
LOOPBACK_DISTRIBUTION = "-kernel inet_dist_use_interface {127,0,0,1}"


def write_node(  # noqa: PLR0913  (each says something about the node that cannot be guessed)
    directory: Path,
    port: int,
    definitions: str,
    plugins: Mapping[str, int],
    settings: Mapping[str, str],
    *,
    joins: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Write the node's files and return the environment that makes the server, and rabbitmqctl, use them.

    `definitions` are the users and their rights, in RabbitMQ's own form. `plugins` are those that serve HTTP
    (rabbitmq_management, rabbitmq_prometheus), each with its port. `settings` go into its configuration as they are.
    `joins` is the environment of another node: the new one shares its cookie and its port mapper, joins its cluster,
    and learns the users from it."""
    home = directory / "home"
    home.mkdir()
    cookie = (Path(joins["HOME"]) / COOKIE).read_text() if joins else secrets.token_hex(20)
    _write_secret(home / COOKIE, cookie, mode=0o400)
    configuration = directory / "rabbitmq.conf"
    lines = _listeners(port, plugins)
    if joins:
        lines += [
            "cluster_formation.peer_discovery_backend = classic_config",
            f"cluster_formation.classic_config.nodes.1 = {joins['RABBITMQ_NODENAME']}",
            f"cluster_formation.classic_config.nodes.2 = {_name(port)}",
        ]
    else:
        users = directory / "definitions.json"
        _write_secret(users, definitions)
        lines.append(f"load_definitions = {users}")
    lines += [f"{name} = {value}" for name, value in settings.items()]
    _write_secret(configuration, "\n".join(lines) + "\n")
    enabled_plugins = directory / "enabled_plugins"
    enabled_plugins.write_text(f"[{','.join(plugins)}].\n")
    # The node's name ends in @localhost, and finding that must not depend on the machine's resolver.
    names = directory / "names"
    names.write_text('{lookup, [file, native]}.\n{host, {127,0,0,1}, ["localhost"]}.\n')
    return {
        "PATH": os.defpath,
        "HOME": str(home),
        "LC_ALL": "C.UTF-8",
        "ERL_INETRC": str(names),
        "ERL_EPMD_PORT": joins["ERL_EPMD_PORT"] if joins else str(free_port()),
        "ERL_EPMD_ADDRESS": LOOPBACK,
        # Any Erlang program that finds no port mapper would start one that stays: while everything is being killed,
        # for one.
        "ERL_ZFLAGS": "-start_epmd false",
        "ERL_CRASH_DUMP": str(directory / "erl_crash.dump"),
        "RABBITMQ_NODENAME": _name(port),
        "RABBITMQ_DIST_PORT": str(free_port()),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": LOOPBACK_DISTRIBUTION,
        "RABBITMQ_CTL_ERL_ARGS": LOOPBACK_DISTRIBUTION,
        # The default, none, makes Erlang's threads sleep between any two of the many file accesses of a start, which
        # then takes twice as long.
        "RABBITMQ_SCHEDULER_BUSY_WAIT_THRESHOLD": "very_short",
        "RABBITMQ_CONFIG_FILE": str(configuration),
        "RABBITMQ_ADVANCED_CONFIG_FILE": str(directory / "advanced.config"),
        "RABBITMQ_CONF_ENV_FILE": str(directory / "rabbitmq-env.conf"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(enabled_plugins),
        "RABBITMQ_MNESIA_BASE": str(directory / "data"),
        "RABBITMQ_LOG_BASE": str(directory / "log"),
        "RABBITMQ_LOGS": "-",
        "RABBITMQ_PID_FILE": str(directory / "pid"),
        # Makes the start script become the Erlang machine instead of waiting for it: signals reach the node itself.
        "RUNNING_UNDER_SYSTEMD": "true",
    }


def _name(port: int) -> str:
    return f"duebell-{port}@localhost"


def _listeners(port: int, plugins: Mapping[str, int]) -> list[str]:
    lines = [f"listeners.tcp.1 = {LOOPBACK}:{port}"]
    for plugin, plugin_port in plugins.items():
        section = plugin.removeprefix("rabbitmq_")
        lines += [f"{section}.tcp.ip = {LOOPBACK}", f"{section}.tcp.port = {plugin_port}"]
    return lines


def _write_secret(file: Path, text: str, mode: int = 0o600) -> None:
    file.touch(mode=0o600)
    file.write_text(text)
    file.chmod(mode)
