"""The key by which a receiver knows that it has seen an occurrence before. Pure."""

from datetime import datetime
from hashlib import sha256

from shared.instants import format_instant


def idempotency_key(job_id: str, due_at: datetime | str, topic: str) -> str:
    """The same for every publish and every delivery attempt of one occurrence, on every replica. Whoever has due_at as
    messages write it already can give that.

    NUL stands between the parts because it can be in none of them: `a-b` + `c` and `a` + `b-c` get different keys.
    """
    due_text = due_at if isinstance(due_at, str) else format_instant(due_at)
    return "event-" + sha256(f"{job_id}\0{due_text}\0{topic}".encode()).hexdigest()[:32]
