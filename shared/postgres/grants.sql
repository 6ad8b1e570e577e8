-- What each service may do in the database: as much as its statements need, column by column, and nothing else; and what
-- people on call may do who only read. Applied by every `python -m shared.migrate`, in one transaction, to the roles that are
-- there (deploy/roles/postgres.sql makes them); without them every service connects as the owner, and nothing is granted.

do $$
declare
    given record;
begin
    for given in
        select rolname as role, tablename as name
          from pg_roles cross join pg_tables
         where rolname in ('duebell_consumer', 'duebell_producer', 'duebell_delivery', 'duebell_reader')
           and schemaname = current_schema()
           and tablename in ('duebell_migrations', 'jobs', 'triggers', 'deliveries', 'delivery_attempts',
                             'delivery_announcements', 'history', 'service_instances', 'delayed_messages', 'delay_exchanges',
                             'job_labels', 'bulks')
    loop
        -- What an earlier release granted.
        execute format('revoke all on %I from %I', given.name, given.role);
        execute format('grant usage on schema %I to %I', current_schema(), given.role);
    end loop;

    for given in
        select role, rights from (values
            ('duebell_consumer', 'select on duebell_migrations'),
            ('duebell_consumer', 'select on jobs'),
            ('duebell_consumer', 'insert (id, status, revision, topic, payload, webhook, rule, rule_index, misfire,
                misfire_grace_seconds, next_run_at, traceparent, finished_at, owner, life, labels) on jobs'),
            ('duebell_consumer', 'update (status, next_run_at, finished_at, retry_at, refusals, version, updated_at,
                revision, topic, payload, webhook, rule, rule_index, misfire, misfire_grace_seconds, traceparent,
                trigger_sequence, life, sequence, last_due_at, created_at, owner, pause_revision, labels) on jobs'),
            ('duebell_consumer', 'select, delete, insert (job_id, trigger_id, sequence, payload, traceparent, life)
                on triggers'),
            ('duebell_consumer', 'select, insert, delete on job_labels'),
            ('duebell_consumer', 'select, insert, delete, update (after_topic, after_id, matched, changed, steps, step_at,
                finished_at, answered_at, reply_to, correlation_id) on bulks'),
            ('duebell_consumer', 'select, insert, update, delete on delayed_messages'),
            ('duebell_consumer', 'usage on sequence delayed_messages_id_seq'),
            ('duebell_consumer', 'select, insert, update (closed_at, opened_at) on delay_exchanges'),
            ('duebell_consumer', 'select, insert on history'),
            ('duebell_consumer', 'select, insert, update on service_instances'),

            ('duebell_producer', 'select on duebell_migrations'),
            ('duebell_producer', 'select, delete on jobs'),
            ('duebell_producer', 'update (status, next_run_at, rule_index, sequence, last_due_at, refusals, retry_at,
                finished_at, updated_at, version) on jobs'),
            ('duebell_producer', 'select, delete, update (fired_at, fire_at, refusals) on triggers'),
            ('duebell_producer', 'select, delete, update (refusals, refused_because, retry_at) on delayed_messages'),
            ('duebell_producer', 'select, delete on job_labels'),
            ('duebell_producer', 'select on delay_exchanges'),
            ('duebell_producer', 'insert on history'),
            ('duebell_producer', 'execute on function maintain_history(double precision)'),
            ('duebell_producer', 'select, insert, update, delete on service_instances'),

            ('duebell_delivery', 'select on duebell_migrations'),
            ('duebell_delivery', 'select, delete on deliveries'),
            ('duebell_delivery', 'insert (job_id, idempotency_key, replay_of, topic, sequence, due_at, fired_at,
                payload, url, host, headers, timeout_seconds, max_retries, secret, traceparent,
                trigger_id, status, next_attempt_at) on deliveries'),
            ('duebell_delivery', 'update (status, version, retry_count, next_attempt_at, failure_reason, finished_at,
                updated_at) on deliveries'),
            ('duebell_delivery', 'select, insert on delivery_attempts'),
            ('duebell_delivery', 'select, insert, update, delete on delivery_announcements'),
            ('duebell_delivery', 'insert on history'),
            ('duebell_delivery', 'select, insert, update on service_instances'),

            -- Rows of every partition of the history are read through `history`, those of later days, too.
            ('duebell_reader', 'select on duebell_migrations, jobs, triggers, deliveries, delivery_attempts,
                delivery_announcements, history, service_instances, delayed_messages, delay_exchanges, job_labels,
                bulks')
        ) as granted (role, rights)
         where role in (select rolname from pg_roles)
    loop
        execute format('grant %s to %I', given.rights, given.role);
    end loop;

    -- By default every role may execute every function. A role that makes a trigger on a temporary table of its own would
    -- run these with the rights of their owner. The triggers of Duebell's tables need no such right.
    revoke execute on function refuse_illegal_job_move() from public;
    revoke execute on function refuse_illegal_delivery_move() from public;
    revoke execute on function keep_job_labels() from public;
    revoke execute on function delete_what_belongs_to_deliveries() from public;
end $$;
