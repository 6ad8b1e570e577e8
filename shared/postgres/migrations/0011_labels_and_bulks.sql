-- Labels of jobs, and bulks: one action on all open jobs that match labels, a topic or the beginning of an id.

alter table jobs add column labels jsonb;                      -- an object of texts; null: none

-- The labels of open jobs, one row each: what a search and a bulk walk. It is a table, not an index on jobs: a walk goes on
-- from where it was, and an occurrence, which rewrites its job, does not touch it. Jobs without labels cost nothing.
create table job_labels (
    label  text collate "C" not null,                           -- key=value
    job_id text collate "C" not null,
    primary key (label, job_id)
) with (
    autovacuum_vacuum_scale_factor = 0.0,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_scale_factor = 0.0,
    autovacuum_vacuum_insert_threshold = 50000,
    autovacuum_analyze_scale_factor = 0.02,
    autovacuum_analyze_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0
);

-- After every statement that changes jobs, job_labels has the labels of those that are open, and no others.
create function keep_job_labels() returns trigger language plpgsql as $$
begin
    if tg_op <> 'INSERT' and old.labels is not null and old.status in ('pending', 'paused') then
        delete from job_labels
         where job_id = old.id and label in (select key || '=' || value from jsonb_each_text(old.labels));
    end if;
    if tg_op <> 'DELETE' and new.labels is not null and new.status in ('pending', 'paused') then
        insert into job_labels (label, job_id) select key || '=' || value, new.id from jsonb_each_text(new.labels);
    end if;
    return null;
end $$;

create trigger jobs_labels_of_new after insert on jobs
    for each row when (new.labels is not null) execute function keep_job_labels();
create trigger jobs_labels_of_changed after update on jobs
    for each row when (
        old.labels is distinct from new.labels
        or (new.labels is not null and (old.status in ('pending', 'paused')) <> (new.status in ('pending', 'paused'))))
    execute function keep_job_labels();
create trigger jobs_labels_of_deleted after delete on jobs
    for each row when (old.labels is not null) execute function keep_job_labels();

-- By topic, and, topic by topic, by the beginning of an id. In the order of bytes, whatever the order of the database is:
-- what begins alike stands together. An operator may have built it without a lock before: see docs/operations/upgrading.md.
create index if not exists jobs_by_topic on jobs (topic collate "C", id collate "C") where status in ('pending', 'paused');

-- One row for each ScheduleBulk. Any consumer carries it on, step by step, from where its row says that it is: a step and
-- the row's change are one transaction.
create table bulks (
    id             text primary key check (length(id) between 1 and 200),
    action         text not null check (action in ('pause', 'resume', 'cancel', 'trigger')),
    dry_run        boolean not null,
    labels         jsonb,
    topic          text,                                        -- and the topics below it
    id_prefix      text,

    by_user        text check (length(by_user) between 1 and 255),   -- the AMQP user
    of_operator    boolean not null,                            -- may act on jobs of other users
    app_id         text,
    operator       text,
    note           text,
    traceparent    text check (length(traceparent) = 55),
    reply_to       text,
    correlation_id text,

    -- The walk: the label that it goes by, or null for topic by topic; and the job behind which the next step begins.
    walk_label     text,
    after_topic    text not null default '',
    after_id       text not null default '',

    matched        bigint not null default 0,
    changed        bigint not null default 0,
    steps          bigint not null default 0,
    requested_at   timestamptz not null default now(),          -- it acts on jobs that were there then
    step_at        timestamptz not null default now(),          -- when the next step may begin
    finished_at    timestamptz,
    answered_at    timestamptz,

    constraint a_bulk_selects_something check (num_nonnulls(labels, topic, id_prefix) > 0),
    constraint a_bulk_changes_what_it_matched check (changed between 0 and matched),
    constraint a_bulk_is_finished_before_it_is_answered check (answered_at is null or finished_at is not null)
);

-- What a consumer looks for; what it deletes in the end.
create index bulks_open on bulks (step_at) where answered_at is null;
create index bulks_answered on bulks (answered_at) where answered_at is not null;
