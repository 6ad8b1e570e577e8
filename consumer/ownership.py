"""Who may command a job. The guard that decides is in each statement; this says the same to explain it. Pure."""

from collections.abc import Collection

# Whose it is, is nobody else's business.
NOT_YOURS = "user_id: the job belongs to another user"
USER_IS_REQUIRED = "user_id: is required here"


def may_command(user: str | None, owner: str | None, operators: Collection[str]) -> bool:
    """A job without an owner obeys everybody; another its owner and the operators."""
    return owner is None or user == owner or user in operators
