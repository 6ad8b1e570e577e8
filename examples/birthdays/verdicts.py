"""What became of changes: *rescheduled*, if every greeting after it has the new data; *skipped*, if one had been on its
way with the old (the next one has the new), or if the change itself came to nothing.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

if TYPE_CHECKING:
    from examples.birthdays.database import Connection

# The first reply counts. A later `duplicate` is about a copy of the same message; one that came first, because replies
# may overtake one another, gives way.
NOTE_OUTCOME = """
update reschedules set outcome = $3
 where event_id = $1 and revision = $2 and (outcome is null or outcome = 'duplicate')
returning came_too_late or $3 not in ('rescheduled', 'accepted') as skipped
"""


async def note_outcome(connection: "Connection", event_id: UUID, revision: int, outcome: str) -> str | None:
    """Note the verdict and return it, if the reply is about a change and says something new."""
    skipped: bool | None = await connection.fetchval(NOTE_OUTCOME, event_id, revision, outcome)
    return None if skipped is None else "skipped" if skipped else "rescheduled"


NOTE_OLD_DATA = """
update reschedules set came_too_late = true
 where event_id = $1 and revision > $2 and not came_too_late
returning revision
"""


async def note_old_data(connection: "Connection", event_id: UUID, revision: int) -> list[int]:
    """Note that a greeting with the data of `revision` has come: later changes were too late for it. Return those."""
    return [row["revision"] for row in await connection.fetch(NOTE_OLD_DATA, event_id, revision)]


COUNT = """
select count(*) filter (where not came_too_late and outcome in ('rescheduled', 'accepted')) as rescheduled,
       count(*) filter (where came_too_late or outcome not in ('rescheduled', 'accepted')) as skipped,
       count(*) filter (where not came_too_late and outcome is null) as open
  from reschedules
"""


@dataclass(frozen=True, slots=True)
class Counted:
    rescheduled: int
    skipped: int
    open: int


async def count_verdicts(connection: "Connection") -> Counted:
    """Count the verdicts of the last 7 days."""
    row = await connection.fetchrow(COUNT)
    return Counted(**row) if row else Counted(0, 0, 0)
