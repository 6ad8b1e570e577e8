"""Which label a walk along `job_labels` goes by."""

from collections.abc import Mapping

from shared.contract.labels import label_row
from shared.postgres.pool import Connection

# Of several labels, the one that fewest open jobs have. A label that many have is not counted to its end.
CHOOSE_LABEL = """
select given.label
  from unnest($1::text[]) as given(label)
 cross join lateral (
       select count(*) as jobs from (
              select from job_labels where job_labels.label = given.label collate "C" limit 10000) as counted) as counts
 order by counts.jobs, given.label
 limit 1
"""


async def choose_label(connection: Connection, labels: Mapping[str, str]) -> str:
    """Return the label, as `job_labels` has it, by which to walk the open jobs that have all of these labels."""
    rows = [label_row(key, value) for key, value in labels.items()]
    label: str = rows[0] if len(rows) == 1 else await connection.fetchval(CHOOSE_LABEL, rows)
    return label
