"""A console in this process, without its web server: `pool` and the other ways to the stores are given by a test."""

from typing import Any

from prometheus_client import CollectorRegistry

from console.access.sessions import SessionKey
from console.metrics import Metrics
from console.settings import ConsoleSettings
from console.web.context import Console
from console.web.rendering import Renderer
from shared.contract.names import Names
from shared.runtime.loops import Stop


def a_console(pool: Any = None, **given: Any) -> Console:
    settings = ConsoleSettings(database_url="postgresql://u@h/d", amqp_url="amqp://u@h/", **given)
    nothing: Any = None
    return Console(
        settings=settings,
        users=settings.read_users(),
        session_key=SessionKey(),
        pool=pool,
        names=Names(""),
        commands=nothing,
        kept=nothing,
        renderer=Renderer(settings.prefix),
        metrics=Metrics(CollectorRegistry()),
        stop=Stop(),
    )
