-- Everything of the birthday application, in its own schema. A transaction that changes a user locks the user's row first: all that
-- happens to one user happens one after the other.

create table users (
    id         uuid primary key,
    first_name text not null check (length(first_name) between 1 and 100),
    last_name  text not null check (length(last_name) between 1 and 100),
    timezone   text not null,
    revision   bigint not null default 1,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now()
);

-- The id is that of the schedule at Duebell.
create table events (
    id         uuid primary key,
    user_id    uuid not null references users on delete cascade,
    type       text not null,
    marked     date not null,      -- the day that is remembered; of BIRTHDAY, the date of birth
    revision   bigint not null,
    starts_on  date not null,
    greeted_on date,
    unique (user_id, type)
);

-- What is still to be said to Duebell. No reference to users: the cancels of one who is gone still have to go out.
create table outbox (
    id             bigint generated always as identity primary key,
    user_id        uuid not null,
    routing_key    text not null check (routing_key in ('schedule.request', 'schedule.cancel')),
    correlation_id text not null,
    body           json not null,
    created_at     timestamptz not null default now()
);
create index outbox_in_order_per_user on outbox (user_id, id);

-- What became of each change of a schedule. Kept for 7 days.
create table reschedules (
    event_id      uuid not null references events on delete cascade,
    revision      bigint not null,
    asked_at      timestamptz not null default now(),
    outcome       text,                              -- Duebell's, from its reply
    came_too_late boolean not null default false,    -- an occurrence went out after it, with the old data
    primary key (event_id, revision)
);
create index reschedules_by_age on reschedules (asked_at);

-- Keys of webhook calls that were handled. Kept for 7 days.
create table received_keys (
    key         text primary key,
    received_at timestamptz not null default now()
);
create index received_keys_by_age on received_keys (received_at);

-- The effect: once for each event and day.
create table greetings (
    id              bigint generated always as identity primary key,
    user_id         uuid not null references users on delete cascade,
    event_id        uuid not null,
    type            text not null,
    occurs_on       date not null,
    message         text not null,
    idempotency_key text not null,
    due_at          timestamptz not null,
    greeted_at      timestamptz not null default now(),
    unique (event_id, occurs_on)
);
create index greetings_by_user on greetings (user_id, id);
