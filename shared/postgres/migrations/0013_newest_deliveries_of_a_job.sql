-- The newest deliveries of a job, however many it has: a rule that fires every few seconds has hundreds of thousands. The
-- index before it had no order within a job, so all of them were read. An operator may have built it before: see
-- docs/operations/upgrading.md. The old one goes first, so that the lock on the table is taken once.

drop index deliveries_job;
do $$ begin
    if exists (select from pg_index where indexrelid = to_regclass('deliveries_of_job') and not indisvalid) then
        drop index deliveries_of_job; -- its building was interrupted
    end if;
end $$;
create index if not exists deliveries_of_job on deliveries (job_id, id);
