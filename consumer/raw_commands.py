"""What the consumer takes from an AMQP message to read its command."""

from consumer.commands.parse import RawCommand
from shared.amqp.message import IncomingMessage
from shared.amqp.publisher import can_be_answered
from shared.contract.fields import read_traceparent
from shared.contract.history import UNNAMED, Origin
from shared.contract.names import OPERATOR_HEADER

MAX_NAME_LENGTH = 100


def raw_command(message: IncomingMessage) -> RawCommand:
    """Return what `read_command` needs of the message."""
    return RawCommand(
        message.body,
        message.type,
        message.routing_key,
        message.timestamp,
        message.unreadable,
        read_traceparent(message.headers),
        message.user_id,
        _origin(message),
        message.reply_to if can_be_answered(message.reply_to) else None,
        message.correlation_id,
    )


def _origin(message: IncomingMessage) -> Origin:
    operator = message.headers.get(OPERATOR_HEADER)
    if message.app_id is None and operator is None:
        return UNNAMED
    return Origin(_readable(message.app_id), _readable(operator))


def _readable(name: object) -> str | None:
    """Return a name that a sender gave itself as it can be stored: text without NUL, of a limited length."""
    return name.replace("\0", "")[:MAX_NAME_LENGTH] if isinstance(name, str) else None
