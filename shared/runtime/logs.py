"""Logging: one line per event, under a stable name; JSON for machines, readable text on a terminal."""

import logging
import sys

import structlog
from structlog.typing import FilteringBoundLogger, Processor

Log = FilteringBoundLogger


def configure_logs(service: str, level: str) -> Log:
    """Set up logging for the process; main calls this once. Lines of libraries take the same form. Those of the AMQP
    libraries are dropped: shared.amqp.connection logs the same in one line, without a stack trace.
    """
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    # Not the tracebacks of rich: they show local variables, and with them URLs that contain passwords.
    render: Processor = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    if not sys.stderr.isatty():
        shared.append(structlog.processors.format_exc_info)
        render = structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[*shared, render],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),  # one write per line: lines of two threads never mix
        cache_logger_on_first_use=True,
    )
    structlog.contextvars.bind_contextvars(service=service)

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=[_drop_meta, render]))
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    for name in ("aio_pika", "aiormq"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # "socket.send() raised exception", once per write
    return get_log()


def get_log() -> Log:
    log: Log = structlog.get_logger()
    return log


def _drop_meta(logger: object, name: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    return structlog.stdlib.ProcessorFormatter.remove_processors_meta(logger, name, event)
