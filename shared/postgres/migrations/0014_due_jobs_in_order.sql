-- The list of schedules has the next to run first, and those of one moment by their ids. The index had no order within a
-- moment: of a million that are due at nine o'clock, all were read for a page of fifty. An operator may have built the new
-- one before: see docs/operations/upgrading.md. The old one goes first, so that the lock on the table is taken once.

drop index jobs_due;
do $$ begin
    if exists (select from pg_index where indexrelid = to_regclass('jobs_due_in_order') and not indisvalid) then
        drop index jobs_due_in_order; -- its building was interrupted
    end if;
end $$;
create index if not exists jobs_due_in_order on jobs (next_run_at, id) where status = 'pending' and retry_at is null;
alter index jobs_due_in_order rename to jobs_due;
