"""The people who may use the console, and what each may do. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from console.access.passwords import PasswordHash
from console.access.tokens import HASH_OF_TOKEN, TokenHash

NO_PASSWORD = "-"  # noqa: S105 - the mark of a user who comes through a proxy alone
PAYLOADS = "payloads"
_NAME = re.compile(r"[A-Za-z0-9._@+-]{1,100}", re.ASCII)
EXAMPLE = "alice:operator+payloads:HASH"


class Role(StrEnum):
    VIEWER = "viewer"  # may read
    OPERATOR = "operator"  # may read and send commands


@dataclass(frozen=True, slots=True)
class User:
    name: str
    role: Role
    sees_payloads: bool
    password: PasswordHash | None = None
    token: TokenHash | None = None  # of a program, which cannot log in

    @property
    def may_act(self) -> bool:
        return self.role is Role.OPERATOR


def parse_users(text: str) -> dict[str, User]:
    """Read users separated by white space or lines; a line that starts with # is a comment. Raises ValueError, which
    names the user at fault, or the number of the entry.
    """
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    users: dict[str, User] = {}
    for number, entry in enumerate(" ".join(lines).split(), 1):
        user = _parse_user(entry, number)
        if user.name in users:
            raise ValueError(f"{user.name} is there twice")
        users[user.name] = user
    return users


def _parse_user(entry: str, number: int) -> User:
    # The entry itself is never repeated: it may hold a password that was not hashed.
    parts = entry.split(":")
    if len(parts) != 3 or not _NAME.fullmatch(parts[0]):
        raise ValueError(f"entry {number} is not of the form {EXAMPLE}")
    name, rights, password = parts
    role, *more = rights.split("+")
    if role not in list(Role) or not set(more) <= {PAYLOADS}:
        raise ValueError(f"{name}: the rights are viewer or operator, and +payloads")
    user = User(name, Role(role), PAYLOADS in more)
    try:
        if password.startswith(HASH_OF_TOKEN):
            return replace(user, token=TokenHash.parse(password))
        return user if password == NO_PASSWORD else replace(user, password=PasswordHash.parse(password))
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def user_of_token(token: str, users: Mapping[str, User]) -> User | None:
    """Return the user whose token it is. Every token is compared: the time tells nothing."""
    found = [user for user in users.values() if user.token is not None and user.token.fits(token)]
    return found[0] if found else None


def user_of_proxy(name: str, users: Mapping[str, User], role_of_others: Role | None) -> User | None:
    """Return the user that a trusted proxy names: as it is listed, else with the role that unlisted users get. A person
    who bears the name of a program gets none of its rights.
    """
    if (listed := users.get(name)) is not None:
        return None if listed.token else listed
    if role_of_others is None or not _NAME.fullmatch(name):
        return None
    return User(name, role_of_others, sees_payloads=False)
