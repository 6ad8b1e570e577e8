-- The history by time: what people and applications did, the newest first, and a sample of what was published when. An
-- index on all entries would cost every occurrence; these cost a change one entry at the end of an index, and an occurrence
-- next to nothing.
--
-- New partitions get both: they are made like `history`.

create index history_changes on history (at, job_id) where what not in ('fired', 'delivered');
create index history_by_time on history using brin (at) with (pages_per_range = 32, autosummarize = on);
