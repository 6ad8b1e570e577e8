-- The same rules for deliveries, at less than half of their price: what each row was checked for by a function and by a
-- lookup of its parent is now checked by conditions, and no statement that keeps the rules calls anything.
--
-- And a delivery may begin as PROCESSING: whoever stores it, and has room for it, has claimed it thereby.

create or replace function refuse_illegal_delivery_move() returns trigger language plpgsql as $$
begin
    if tg_op = 'INSERT' then
        raise exception 'a new delivery is PENDING or PROCESSING at version 1, not % at %', new.status, new.version
            using errcode = 'check_violation';
    elsif new.version <> old.version + 1 and new.status = old.status then
        raise exception 'delivery % is at version %, and % does not follow it', old.id, old.version, new.version
            using errcode = 'check_violation';
    elsif (new.id, new.job_id, new.idempotency_key, new.replay_of)
        is distinct from (old.id, old.job_id, old.idempotency_key, old.replay_of) then
        raise exception 'delivery % keeps its job and its key', old.id using errcode = 'check_violation';
    end if;
    raise exception 'delivery % cannot go from % at % to % at %', old.id, old.status, old.version, new.status, new.version
        using errcode = 'check_violation';
end $$;

drop trigger deliveries_move_legally on deliveries;
create trigger deliveries_begin_legally before insert on deliveries
    for each row when (new.status not in ('PENDING', 'PROCESSING') or new.version <> 1)
    execute function refuse_illegal_delivery_move();
create trigger deliveries_move_legally before update on deliveries
    for each row when (
        not (old.status = 'PENDING' and new.status = 'PROCESSING'
             or old.status = 'PROCESSING' and new.status in ('PROCESSING', 'COMPLETED', 'FAILED'))
        or new.version <> old.version + 1
        or new.id <> old.id or new.job_id <> old.job_id or new.idempotency_key <> old.idempotency_key
        or new.replay_of is distinct from old.replay_of)
    execute function refuse_illegal_delivery_move();

-- Attempts and announcements are written by the very statement that changes their delivery, so looking it up once more
-- for each of them, and locking it, found nothing that could be missing. What is deleted still takes its own along.
alter table delivery_attempts drop constraint delivery_attempts_delivery_id_fkey;
alter table delivery_announcements drop constraint delivery_announcements_delivery_id_fkey;

-- With its owner's rights: nobody else may delete an attempt by itself.
create function delete_what_belongs_to_deliveries() returns trigger language plpgsql security definer as $$
begin
    delete from delivery_attempts where delivery_id in (select id from gone);
    delete from delivery_announcements where delivery_id in (select id from gone);
    return null;
end $$;
do $$
begin
    execute format('alter function delete_what_belongs_to_deliveries() set search_path = %I, pg_temp', current_schema());
end $$;
create trigger deliveries_take_their_own_along after delete on deliveries
    referencing old table as gone for each statement execute function delete_what_belongs_to_deliveries();
