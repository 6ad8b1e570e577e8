-- Pausing, triggering, and who may do it.
--
--   pending ◀─▶ paused       a SchedulePause, a ScheduleResume; a paused job keeps its next_run_at
--   paused ───▶ paused       a reschedule
--   paused ───▶ cancelled    a ScheduleCancel
--
-- Claims are of pending rows, so a paused job is in none of the indexes that they walk. It is in jobs_finished, which
-- is of all rows that are not pending, but without a finished_at: retention never finds it.

alter table jobs
    add column owner text check (length(owner) between 1 and 255),        -- an AMQP user; null: obeys everybody
    add column trigger_sequence bigint not null default 0,                -- how many triggers it has had
    drop constraint jobs_status_check,
    drop constraint a_pending_job_has_a_next_run,
    drop constraint a_terminal_job_has_an_end,
    add constraint jobs_status_check check (status in ('pending', 'paused', 'done', 'cancelled')),
    add constraint an_open_job_has_a_next_run check ((status in ('pending', 'paused')) = (next_run_at is not null)),
    add constraint a_terminal_job_has_an_end check ((status in ('pending', 'paused')) = (finished_at is null));

create function refuse_illegal_job_move() returns trigger language plpgsql as $$
begin
    raise exception 'job % is %, and cannot become %', old.id, old.status, new.status using errcode = 'check_violation';
end $$;

drop trigger jobs_terminal_is_final on jobs;
drop function refuse_change_of_terminal_row();
create trigger jobs_move_legally before update on jobs
    for each row when (old.status in ('done', 'cancelled') or (old.status = 'paused' and new.status = 'done'))
    execute function refuse_illegal_job_move();

-- A firing outside the rule, asked for by a ScheduleTrigger. Written by the consumer under the lock of its job, fired by
-- the producer under both locks: after an acknowledged cancel none fires.
create table triggers (
    job_id       text not null references jobs on delete cascade,
    trigger_id   text not null check (length(trigger_id) between 1 and 200),
    sequence     bigint not null check (sequence >= 1),   -- 1, 2, 3 … within the job's triggers
    payload      json,                                     -- instead of the job's; null: the job's
    traceparent  text check (length(traceparent) = 55),
    requested_at timestamptz not null default now(),       -- the due_at of its event
    fire_at      timestamptz not null default now(),       -- later while the broker refuses its event
    refusals     integer not null default 0,
    fired_at     timestamptz,
    primary key (job_id, trigger_id)
) with (
    autovacuum_vacuum_scale_factor = 0.0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);

-- What the producer claims from; what retention deletes from.
create index triggers_due on triggers (fire_at) where fired_at is null;
create index triggers_fired on triggers (fired_at) where fired_at is not null;

-- Which trigger a delivery comes of, if any.
alter table deliveries add column trigger_id text check (length(trigger_id) between 1 and 200);
