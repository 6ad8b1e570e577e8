-- Lists of paused jobs, the next to run first, and of cancelled ones, the last to end first, beside millions of others.
-- Only what is paused or cancelled is in them: a request and an occurrence do not touch them. An operator may have built
-- them before: see docs/operations/upgrading.md.

create index if not exists jobs_paused on jobs (next_run_at, id) where status = 'paused';
create index if not exists jobs_cancelled on jobs (finished_at, id) where status = 'cancelled';
