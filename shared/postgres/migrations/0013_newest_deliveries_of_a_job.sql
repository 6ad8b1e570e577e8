-- The newest deliveries of a job, however many it has: a rule that fires every few seconds has hundreds of thousands. The
-- index before it had no order within a job, so all of them were read. An operator may have built it before: see
-- docs/operations/upgrading.md. The old one goes first, so that the lock on the table is taken once.

drop index deliveries_job;
create index if not exists deliveries_of_job on deliveries (job_id, id);
