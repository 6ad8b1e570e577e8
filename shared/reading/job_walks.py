"""The SQL by which `shared.reading.jobs` lists and counts jobs."""

from collections.abc import Mapping

# Parameters of each walk: $1 search, $2 topic, $3 since, $4 until, $5 and $6 the cursor, $7 how many rows to read, $8
# the state, $9 labels, $10 the owner; of a walk by a label, $11 the label. A walk yields ids in its order; `fits` tells
# which of them match.
_MATCHES = """($1::text is null or strpos(lower(id), lower($1)) > 0)
       and ($2::text is null or topic = $2 or starts_with(topic, $2 || '.'))
       and ($9::jsonb is null or labels @> $9)
       and ($10::text is null or owner = $10)"""

_READY = f"""
select id, next_run_at as moment, {_MATCHES} as fits from jobs
 where status = 'pending' and retry_at is null
   and next_run_at >= greatest($3::timestamptz, $5::timestamptz, '-infinity')
   and next_run_at < coalesce($4::timestamptz, 'infinity')
   and (next_run_at, id) > (coalesce($5, '-infinity'), coalesce($6::text, ''))
 order by next_run_at, id limit $7::int
"""  # noqa: S608 - put together from constants

_WAITING = f"""
select id, retry_at as moment, {_MATCHES} and ($8::text is distinct from 'refused' or refusals > 0) as fits from jobs
 where status = 'pending' and retry_at is not null
   and retry_at >= greatest($3::timestamptz, $5::timestamptz, '-infinity')
   and retry_at < coalesce($4::timestamptz, 'infinity')
   and (retry_at, id) > (coalesce($5, '-infinity'), coalesce($6::text, ''))
 order by retry_at, id limit $7::int
"""  # noqa: S608

_PENDING = f"select * from (({_READY}) union all ({_WAITING})) as pending order by moment, id limit $7::int"  # noqa: S608

_PAUSED = f"""
select id, next_run_at as moment, {_MATCHES} and $8::text is not null as fits from jobs
 where status = 'paused'
   and next_run_at >= greatest($3::timestamptz, $5::timestamptz, '-infinity')
   and next_run_at < coalesce($4::timestamptz, 'infinity')
   and (next_run_at, id) > (coalesce($5, '-infinity'), coalesce($6::text, ''))
 order by next_run_at, id limit $7::int
"""  # noqa: S608

_ENDED = f"""
select id, finished_at as moment, {_MATCHES} and status = $8::text as fits from jobs
 where status <> 'pending'
   and finished_at >= coalesce($3::timestamptz, '-infinity')
   and finished_at < coalesce($4::timestamptz, 'infinity') and finished_at <= coalesce($5::timestamptz, 'infinity')
   and (finished_at, id) < (coalesce($5, 'infinity'), coalesce($6::text, ''))
 order by finished_at desc, id desc limit $7::int
"""  # noqa: S608

_CANCELLED = f"""
select id, finished_at as moment, {_MATCHES} and $8::text is not null as fits from jobs
 where status = 'cancelled'
   and finished_at >= coalesce($3::timestamptz, '-infinity')
   and finished_at < coalesce($4::timestamptz, 'infinity') and finished_at <= coalesce($5::timestamptz, 'infinity')
   and (finished_at, id) < (coalesce($5, 'infinity'), coalesce($6::text, ''))
 order by finished_at desc, id desc limit $7::int
"""  # noqa: S608

_ALL = f"""
select id, null::timestamptz as moment,
       {_MATCHES}
       and ($3::timestamptz is null or coalesce(finished_at, retry_at, next_run_at) >= $3)
       and ($4::timestamptz is null or coalesce(finished_at, retry_at, next_run_at) < $4)
       and $8::text is not null as fits
  from jobs
 where id > coalesce($6::text, '') and $5::timestamptz is null
 order by id limit $7::int
"""  # noqa: S608


# The open jobs that have a label, by id.
_LABELED = f"""
select labeled.key as id, null::timestamptz as moment,
       {_MATCHES}
       and status = case when $8::text = 'paused' then 'paused' else 'pending' end
       and ($8 <> 'refused' or (refusals > 0 and retry_at is not null))
       and ($3::timestamptz is null or coalesce(retry_at, next_run_at) >= $3)
       and ($4::timestamptz is null or coalesce(retry_at, next_run_at) < $4) as fits
  -- job_labels is in the order of bytes, and the key of jobs in that of the database.
  from (select job_id, job_id collate "default" as key from job_labels
         where label = $11::text and job_id > coalesce($6::text, '') and $5::timestamptz is null
         order by job_id limit $7::int) as labeled
  left join lateral (select * from jobs where jobs.id = labeled.key limit 1) as job on true
 order by labeled.job_id
"""  # noqa: S608

# The open jobs of a topic and of those below it, by their moment: all of them are read. See MAX_ROWS_OF_TOPIC.
_OF_TOPIC = f"""
select id, moment, fits
  from (select id, coalesce(retry_at, next_run_at) as moment,
               {_MATCHES} and ($8::text <> 'refused' or (refusals > 0 and retry_at is not null)) as fits
          from ((select * from jobs where status in ('pending', 'paused') and topic collate "C" = $2)
                union all
                (select * from jobs where status in ('pending', 'paused')
                    and topic collate "C" > $2 || '.' and topic collate "C" < $2 || '/')) as jobs
         where status = case when $8 = 'paused' then 'paused' else 'pending' end) as of_topic
 where moment >= greatest($3::timestamptz, $5::timestamptz, '-infinity')
   and moment < coalesce($4::timestamptz, 'infinity')
   and (moment, id) > (coalesce($5::timestamptz, '-infinity'), coalesce($6::text, ''))
 order by moment, id limit $7::int
"""  # noqa: S608

_COLUMNS = """jobs.id, status, topic, coalesce(finished_at, retry_at, next_run_at) as moment, next_run_at, retry_at,
             refusals, revision, life, sequence, last_due_at, finished_at, owner, rule->>'rrule' as rrule,
             rule->>'cron' as cron, (rule->>'every_seconds')::int as every_seconds,
             rule->>'timezone' as timezone, rule->>'start_at' as start_at,
             webhook->>'url' is not null as has_webhook, labels::text"""
_PAGE = """
with walked as materialized (select row_number() over () as place, * from ({walk}) as read)
select last.id as last_id, last.moment as last_moment, last.place as rows_read, job.*
  from (select id, moment, place from walked order by place desc limit 1) as last
  left join (select id, place from walked where fits order by place limit {limit}::int) as fitting on true
  left join lateral (
      select {columns}
        from jobs where jobs.id = fitting.id limit 1) as job on true
 order by fitting.place
"""
_COUNT = "select count(*) as rows_read, count(*) filter (where fits) as jobs from ({walk}) as walked"


def _page(walk: str, limit: str) -> str:
    return _PAGE.format(walk=walk, limit=limit, columns=_COLUMNS)


# By the value of a JobState.
_WALKS: Mapping[str, str] = {
    "all": _ALL,
    "pending": _PENDING,
    "refused": _WAITING,
    "paused": _PAUSED,
    "done": _ENDED,
    "cancelled": _CANCELLED,
}
LIST_JOBS = {state: _page(walk, "$11") for state, walk in _WALKS.items()}
COUNT_JOBS = {state: _COUNT.format(walk=walk) for state, walk in _WALKS.items()}
LIST_LABELED = _page(_LABELED, "$12")
COUNT_LABELED = _COUNT.format(walk=_LABELED)
LIST_OF_TOPIC = _page(_OF_TOPIC, "$11")
COUNT_OF_TOPIC = _COUNT.format(walk=_OF_TOPIC)

# '/' comes right after '.' in the order of bytes.
COUNT_TOPIC = """
select count(*) from (
    (select from jobs where status in ('pending', 'paused') and topic collate "C" = $1 limit $2)
    union all
    (select from jobs where status in ('pending', 'paused')
        and topic collate "C" > $1 || '.' and topic collate "C" < $1 || '/' limit $2)) as counted
"""

FIND_BY_BEGINNING = f"""
select {_COLUMNS} from (select * from jobs where id >= $1 order by id limit $2) as jobs
 where starts_with(id, $1) order by id limit $3
"""  # noqa: S608
