"""The key by which a receiver knows that it has seen an occurrence before. Pure."""

from datetime import datetime
from hashlib import sha256

from shared.contract.instants import format_instant


def idempotency_key(job_id: str, due_at: datetime | str, topic: str, trigger_id: str | None = None) -> str:
    """The same for every publish and every delivery attempt of one occurrence, on every replica. A trigger has one part
    more, so that it never has the key of an occurrence, or of another trigger at the same moment. Whoever has due_at as
    messages write it already can give that.

    NUL stands between the parts because it can be in none of them: `a-b` + `c` and `a` + `b-c` get different keys.
    """
    parts = (job_id, due_at if isinstance(due_at, str) else format_instant(due_at), topic)
    text = "\0".join(parts if trigger_id is None else (*parts, trigger_id))
    return "event-" + sha256(text.encode()).hexdigest()[:32]
