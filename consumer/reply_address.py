"""Which reply addresses can be answered. Pure.

A reply goes to a queue by its name, and a name that is nobody's disturbs nobody. RabbitMQ's direct reply addresses are
different: they hold an Erlang process id, which the broker decodes when a reply is published, and it ends the whole
connection, with the replies of everybody else, over one that is not of its own making. So such an address must have the
form that the broker gives it, to the byte.
"""

import binascii
from base64 import b64decode

DIRECT = "amq.rabbitmq.reply-to."

# Erlang's external term format: a process id begins with one of these, followed by its node's name, an atom, and by
# numbers of so many bytes.
_TERM = 131
_PIDS = {ord("X"): 12, ord("g"): 9}
# An atom begins with one of these, followed by its length in so many bytes.
_ATOMS = {ord("w"): 1, ord("s"): 1, ord("v"): 2, ord("d"): 2}


def can_be_answered(address: str | None) -> bool:
    if not address:
        return False
    if not address.startswith(DIRECT):
        return True
    process, _, key = address.removeprefix(DIRECT).partition(".")
    return _is_process_id(_decoded(process)) and _decoded(key) is not None


def _decoded(text: str) -> bytes | None:
    try:
        return b64decode(text, validate=True) or None
    except (binascii.Error, ValueError):
        return None


def _is_process_id(term: bytes | None) -> bool:
    if term is None or len(term) < 3 or term[0] != _TERM or term[1] not in _PIDS or term[2] not in _ATOMS:
        return False
    digits = _ATOMS[term[2]]
    name = int.from_bytes(term[3 : 3 + digits], "big")
    return 0 < name <= 255 and len(term) == 3 + digits + name + _PIDS[term[1]]
