-- One login per service, and one for people on call, who only read. For psql: run it as the operator, as often as you
-- like; passwords come from the environment. The operator needs CREATEROLE, and need not be a superuser.
-- What each of them may do is in shared/postgres/grants.sql, which every `python -m shared.migrate` applies: so roles first,
-- then migrate. The local stack and docker-compose.yml do exactly that.

\set ON_ERROR_STOP on
\getenv consumer CONSUMER_PASSWORD
\getenv producer PRODUCER_PASSWORD
\getenv delivery DELIVERY_PASSWORD
\getenv reader READER_PASSWORD

select 'create role ' || name
  from unnest(array['duebell_consumer', 'duebell_producer', 'duebell_delivery', 'duebell_reader']) as name
 where name not in (select rolname from pg_roles)
\gexec

alter role duebell_consumer login password :'consumer';
alter role duebell_producer login password :'producer';
alter role duebell_delivery login password :'delivery';
alter role duebell_reader login password :'reader';

alter role duebell_reader set default_transaction_read_only = on;

-- The settings of the sessions of the services and of the console, which reads as duebell_reader. They set them by
-- themselves, but PgBouncer refuses that: see docs/operations/stores.md#pgbouncer. Also where people read with psql: a long read
-- holds back vacuum, and with it every claim, so it is ended.
select format('alter role %s set %s = %L', role, setting, value)
  from (values ('synchronous_commit', 'on'),
               ('statement_timeout', '30000'),
               ('idle_in_transaction_session_timeout', '60000')) as of_all (setting, value),
       unnest(array['duebell_consumer', 'duebell_producer', 'duebell_delivery', 'duebell_reader']) as role
 union all
select format('alter role %s set %s = off', role, setting)
  from (values ('duebell_producer', array['enable_seqscan', 'enable_bitmapscan', 'enable_sort']),
               ('duebell_delivery', array['enable_seqscan', 'enable_bitmapscan', 'enable_hashjoin', 'enable_mergejoin']),
               ('duebell_reader', array['jit']))
       as planners (role, settings), unnest(settings) as setting
\gexec
