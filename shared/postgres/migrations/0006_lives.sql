-- Ids live again: a request with a higher revision begins a new life of an id that has ended, in the same row.
--
--   done ──────▶ pending     a request with a higher revision: a new life
--   cancelled ─▶ pending     the same; the triggers that the cancel dropped are deleted
--   done ──────▶ done        a cancel that came late closes a higher revision
--   cancelled ─▶ cancelled   a cancel that closes a higher revision
--
-- Constant defaults are metadata: no table is rewritten, and the locks are short. Services of the release before do not
-- name the new columns and go on running.

alter table jobs
    -- The highest revision of a pause or resume that was applied.
    add column pause_revision bigint not null default 0,
    -- 0: no request has been stored yet, a cancel came before all of them.
    add column life integer not null default 1;

-- The life in which the trigger was asked for. It is part of the idempotency key.
alter table triggers add column life integer not null default 1;

-- Still called only for rows that are done or cancelled, and for paused rows that would become done.
create or replace function refuse_illegal_job_move() returns trigger language plpgsql as $$
begin
    if old.status in ('done', 'cancelled') and new.revision > old.revision then
        if new.status = old.status and new.life = old.life then
            return new;
        end if;
        if new.status = 'pending' and new.life = old.life + 1 then
            -- A cancel drops the triggers that were not fired. They must not be fired in the new life. Those of a job
            -- that is done are still to be fired.
            if old.status = 'cancelled' then
                delete from triggers where job_id = old.id and fired_at is null;
            end if;
            return new;
        end if;
    end if;
    raise exception 'job % is %, and cannot become %', old.id, old.status, new.status using errcode = 'check_violation';
end $$;
