"""AMQP 0-9-1 frames in a stream of bytes: where each begins and ends. Pure."""

from struct import Struct

from aiormq.exceptions import InvalidFrameError

METHOD, HEADER, BODY, HEARTBEAT = 1, 2, 3, 8
KINDS = frozenset((METHOD, HEADER, BODY, HEARTBEAT))
HEAD, END = 7, 0xCE

read_head = Struct(">BHI").unpack_from  # kind, channel, length
_method = Struct(">HH").pack

# What the payload of a method frame begins with: class and method.
TUNE = _method(10, 30)
CLOSINGS = (_method(20, 40), _method(20, 41))  # Channel.Close and Channel.CloseOk
RETURN, DELIVER, ACK, NACK = _method(60, 50), _method(60, 60), _method(60, 80), _method(60, 120)
METHOD_SIZE = 4

# The payload of a content header begins with class, weight, size of the body; flags and properties follow.
read_header_start = Struct(">HHQH").unpack_from
FLAGS = 12


class Incomplete(Exception):
    """The rest of the frame, or of the message, has not arrived yet."""


def frame_end(data: bytes, start: int) -> int:
    """Returns the place after the frame that starts at `start`, all of which has arrived."""
    if len(data) < start + HEAD:
        raise Incomplete
    end: int = start + HEAD + read_head(data, start)[2] + 1
    if len(data) < end:
        raise Incomplete
    if data[end - 1] != END:
        raise InvalidFrameError("a frame does not end where it should")
    return end
