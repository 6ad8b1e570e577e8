-- One row per webhook delivery, owned by the delivery service alone.
--
--   PENDING ────▶ PROCESSING                a worker claimed it
--   PROCESSING ─▶ PROCESSING                a retry waits, a worker gave it back, or another took over an expired lease
--   PROCESSING ─▶ COMPLETED | FAILED        the end: nothing changes such a row again
--
-- next_attempt_at is the one clock of an open row: when it may be claimed. Claiming moves it to the end of the lease, so
-- that the row of a worker that died becomes due by itself. Every UPDATE names the version it expects; the trigger below
-- refuses what the diagram does not show.

create table deliveries (
    id               bigint generated always as identity primary key,
    job_id           text not null check (length(job_id) between 1 and 200),
    idempotency_key  text not null check (length(idempotency_key) between 1 and 200),
    replay_of        bigint check (replay_of <> id),        -- the failed delivery that this one tries again

    topic            text not null,
    sequence         bigint not null check (sequence >= 1),
    due_at           timestamptz not null check (due_at between '1900-01-01Z' and '2200-01-01Z'),
    fired_at         timestamptz not null check (fired_at between '1900-01-01Z' and '2200-01-01Z'),
    payload          json,                                   -- json, not jsonb: goes out byte for byte as it came in

    url              text not null,
    host             text not null,                          -- host:port in lower case: what limits and breakers go by
    headers          json not null,
    timeout_seconds  double precision not null check (timeout_seconds > 0 and timeout_seconds <= 120),
    max_retries      integer not null check (max_retries between 0 and 20),
    secret           text,                                   -- the name of a signing secret, never its value

    status           text not null default 'PENDING'
                     check (status in ('PENDING', 'PROCESSING', 'COMPLETED', 'FAILED')),
    version          bigint not null default 1,              -- plus one with every change
    retry_count      integer not null default 0,             -- attempts after the first
    next_attempt_at  timestamptz default now(),
    failure_reason   text,

    created_at       timestamptz not null default now(),
    updated_at       timestamptz not null default now(),
    finished_at      timestamptz,

    constraint an_open_delivery_has_a_next_attempt
        check ((status in ('PENDING', 'PROCESSING')) = (next_attempt_at is not null)),
    constraint a_terminal_delivery_has_an_end check ((status in ('PENDING', 'PROCESSING')) = (finished_at is null)),
    constraint a_failed_delivery_has_a_reason check ((status = 'FAILED') = (failure_reason is not null)),
    constraint retries_are_limited check (retry_count between 0 and max_retries)
) with (
    -- As for jobs: every claim and every record rewrites its row.
    fillfactor = 85,
    autovacuum_vacuum_scale_factor = 0.0,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_scale_factor = 0.0,
    autovacuum_vacuum_insert_threshold = 50000,
    autovacuum_analyze_scale_factor = 0.02,
    autovacuum_analyze_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0
);

-- An occurrence is stored once, however often its event comes; a failed delivery is replayed once (its replay, should it
-- fail too, can be replayed in turn).
create unique index deliveries_key on deliveries (idempotency_key) where replay_of is null;
create unique index deliveries_replay on deliveries (replay_of) where replay_of is not null;

-- What is claimed from: the oldest first, and host by host, where a host with a long queue costs as much to step over as
-- one with a single row. Partial: terminal rows, however many, are not in them. The two say the same in different words
-- (an open row has no end), and each claim uses one wording: so neither can be planned on the other's index.
create index deliveries_due on deliveries (next_attempt_at) where finished_at is null;
create index deliveries_due_of_host on deliveries (host, next_attempt_at) where status in ('PENDING', 'PROCESSING');

-- What retention deletes from; what an operator looks for.
create index deliveries_finished on deliveries (finished_at) where status in ('COMPLETED', 'FAILED');
create index deliveries_job on deliveries (job_id);
create index deliveries_failed on deliveries (finished_at) where status = 'FAILED';

create function refuse_illegal_delivery_move() returns trigger language plpgsql as $$
begin
    if tg_op = 'INSERT' then
        if new.status <> 'PENDING' or new.version <> 1 then
            raise exception 'a new delivery is PENDING at version 1, not % at %', new.status, new.version
                using errcode = 'check_violation';
        end if;
        return new;
    end if;
    if not ((old.status = 'PENDING' and new.status = 'PROCESSING')
            or (old.status = 'PROCESSING' and new.status in ('PROCESSING', 'COMPLETED', 'FAILED'))) then
        raise exception 'delivery % cannot go from % to %', old.id, old.status, new.status
            using errcode = 'check_violation';
    end if;
    if new.version <> old.version + 1 then
        raise exception 'delivery % is at version %, and % does not follow it', old.id, old.version, new.version
            using errcode = 'check_violation';
    end if;
    if (new.id, new.job_id, new.idempotency_key, new.replay_of)
        is distinct from (old.id, old.job_id, old.idempotency_key, old.replay_of) then
        raise exception 'delivery % keeps its job and its key', old.id using errcode = 'check_violation';
    end if;
    return new;
end $$;

create trigger deliveries_move_legally before insert or update on deliveries
    for each row execute function refuse_illegal_delivery_move();

-- Every attempt that came to an end: when, how long, what the receiver said.
create table delivery_attempts (
    delivery_id      bigint not null references deliveries on delete cascade,
    number           integer not null check (number >= 1),
    started_at       timestamptz not null,
    duration_seconds double precision not null check (duration_seconds >= 0),
    status_code      integer,
    error            text,                                   -- the class of what went wrong, if there was no answer
    answer           bytea check (octet_length(answer) <= 4096),
    primary key (delivery_id, number),
    constraint an_attempt_ends_with_an_answer_or_an_error check (num_nonnulls(status_code, error) = 1)
) with (
    autovacuum_vacuum_scale_factor = 0.0,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_scale_factor = 0.0,
    autovacuum_vacuum_insert_threshold = 50000
);

-- Ended deliveries whose event is still to be published. Written by the statement that ends the delivery, deleted when
-- the broker has confirmed the event: a crash in between publishes it again, and none is lost.
create table delivery_announcements (
    delivery_id      bigint primary key references deliveries,
    announce_at      timestamptz not null default now(),
    refusals         integer not null default 0
) with (
    autovacuum_vacuum_scale_factor = 0.0,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0
);

create index delivery_announcements_due on delivery_announcements (announce_at);
