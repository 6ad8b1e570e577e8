-- History: what happened to each id, when, and by whom. And which processes run.
--
-- A row of `history` is written in the transaction of what it tells, and never changed. A job may be deleted, or may never
-- have existed (a rejected command), so `history` has no foreign key. Rows of one day are one partition: retention drops
-- whole partitions. Rows of a day without a partition are kept in `history_rest`.

create table history (
    at        timestamptz not null default clock_timestamp(),   -- of a fired occurrence: when it was published
    job_id    text not null,                                     -- the id that the command carried
    what      text not null,
    life      integer,
    revision  bigint,
    sequence  bigint,                                            -- of the ScheduleDue
    due_at    timestamptz,                                       -- of the occurrence; of a change: the next run after it
    by_user   text,                                              -- the AMQP user, checked by the broker
    app_id    text,                                              -- the AMQP property, not checked
    operator  text,                                              -- a person, as the command line names it, not checked
    note      text,
    details   json
) partition by range (at);

create index history_of_job on history (job_id, at);

create table history_rest partition of history default;

-- Create the partitions of today and the next days, and drop those that ended more than `keep_days` days ago. The function
-- belongs to the owner of the schema: the producer may call it, and has no right to create or drop tables itself. It waits
-- for no lock for long, because inserts would wait behind it. What it could not do is left for the next call.
create function maintain_history(keep_days double precision) returns void language plpgsql security definer
set lock_timeout = '100ms' set timezone = 'UTC' as $$
declare
    first_day date := current_date;
    day date;
    name text;
    old record;
begin
    if not pg_try_advisory_xact_lock(hashtext('duebell maintain_history')) then
        return;
    end if;
    for day in select first_day + n from generate_series(0, 3) as n loop
        name := 'history_' || to_char(day, 'YYYYMMDD');
        begin
            if to_regclass(name) is null then
                -- Attaching locks `history` less than `create table … partition of` does: inserts go on.
                execute format('create table %I (like history including defaults including indexes)', name);
                execute format('alter table history attach partition %I for values from (%L) to (%L)',
                               name, day::timestamptz, (day + 1)::timestamptz);
            end if;
        exception
            when lock_not_available then null;   -- the next call tries again
            when check_violation then null;      -- rows of that day are in history_rest: it goes without a partition
        end;
    end loop;
    for old in
        select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
         where i.inhparent = 'history'::regclass and c.relname ~ '^history_[0-9]{8}$'
           and to_date(substr(c.relname, 9), 'YYYYMMDD') + 1 < now() - make_interval(secs => keep_days * 86400)
    loop
        begin
            execute format('drop table %I', old.relname);
        exception
            when lock_not_available then null;
        end;
    end loop;
    delete from history_rest where at < now() - make_interval(secs => keep_days * 86400);
end $$;

do $$
begin
    execute format('alter function maintain_history(double precision) set search_path = %I, pg_temp', current_schema());
end $$;
revoke execute on function maintain_history(double precision) from public;

select maintain_history(30);

-- One row for each process. A process that is killed or frozen stops writing `seen_at`; a clean stop sets `stopped_at`.
create table service_instances (
    instance   text primary key,
    service    text not null,
    host       text not null,
    version    text not null,
    started_at timestamptz not null default now(),
    seen_at    timestamptz not null default now(),
    stopped_at timestamptz
);
