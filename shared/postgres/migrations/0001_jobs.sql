-- One row per schedule, owned by consumer and producer.
--
--   pending ──▶ done         the last occurrence was published and confirmed (or dropped by its misfire policy)
--   pending ──▶ cancelled    a ScheduleCancel came in time, or came before its request
--   pending ──▶ pending      the next occurrence of a rule, or a reschedule
--
-- Nothing leaves done or cancelled: every UPDATE names status = 'pending', and the trigger below refuses the rest.

create table jobs (
    id                    text primary key check (length(id) between 1 and 200),
    status                text not null check (status in ('pending', 'done', 'cancelled')),
    revision              bigint not null,
    version               bigint not null default 1,   -- plus one with every change

    topic                 text not null,
    payload               json,                         -- json, not jsonb: comes out byte for byte as it went in
    webhook               json,

    rule                  json,                         -- null for a one-shot
    rule_index            bigint not null default 1,    -- which occurrence of the rule next_run_at is (COUNT needs it)
    misfire               text not null check (misfire in ('all', 'latest', 'skip')),
    misfire_grace_seconds integer not null check (misfire_grace_seconds >= 0),

    next_run_at           timestamptz check (next_run_at between '1900-01-01Z' and '2200-01-01Z'),
    sequence              bigint not null default 0,    -- how many ScheduleDue have been published for it
    last_due_at           timestamptz,                  -- due_at of the newest of them

    -- Set while the broker refuses the event (say, an application's queue is full): when to try again.
    retry_at              timestamptz,
    refusals              integer not null default 0,

    created_at            timestamptz not null default now(),
    updated_at            timestamptz not null default now(),
    finished_at           timestamptz,

    constraint a_pending_job_has_a_next_run check ((status = 'pending') = (next_run_at is not null)),
    constraint a_terminal_job_has_an_end check ((status = 'pending') = (finished_at is null)),
    constraint only_a_pending_job_is_retried check (status = 'pending' or retry_at is null)
) with (
    -- Every firing rewrites its row: leave room for it on the same page, and vacuum by the thousand rows, not by the
    -- fifth of a table that may have ten million. Without pauses, so that vacuum keeps up with 20,000 firings a second.
    fillfactor = 85,
    autovacuum_vacuum_scale_factor = 0.0,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_scale_factor = 0.0,
    autovacuum_vacuum_insert_threshold = 50000,
    autovacuum_analyze_scale_factor = 0.02,
    autovacuum_analyze_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0
);

-- What the producer's lanes claim from. Partial: terminal rows, however many, are not in them.
create index jobs_due on jobs (next_run_at) where status = 'pending' and retry_at is null;
create index jobs_refused on jobs (retry_at) where status = 'pending' and retry_at is not null;

-- What retention deletes from.
create index jobs_finished on jobs (finished_at) where status <> 'pending';

create function refuse_change_of_terminal_row() returns trigger language plpgsql as $$
begin
    raise exception '% % is %, which is final', tg_table_name, old.id, old.status using errcode = 'check_violation';
end $$;

create trigger jobs_terminal_is_final before update on jobs
    for each row when (old.status <> 'pending') execute function refuse_change_of_terminal_row();
