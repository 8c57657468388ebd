-- +goose Up

-- Runs that agents open themselves. Texts are kept as SHA-256 only.

-- The thread of a (session, route, client conversation), made once and numbered.
create table bz_agent_threads (
    thread_id              bigint primary key check (thread_id between 1 and 9007199254740991),
    session_id             uuid not null references bz_agent_sessions,
    route_key              text collate "C" not null,
    client_conversation_id text collate "C" not null,
    created_at             timestamptz not null,
    -- Serves: the thread of a turn.
    unique (session_id, route_key, client_conversation_id)
);
create sequence bz_agent_thread_numbers as bigint maxvalue 9007199254740991;

-- Serves: drawing no number that an imported run has, whosever it is.
create index bz_agent_client_runs_thread on bz_agent_client_runs (thread_id);

-- Runs that were imported before there was this table keep their threads.
insert into bz_agent_threads (thread_id, session_id, route_key, client_conversation_id, created_at)
select distinct on (thread_id) thread_id, session_id, route_key, client_conversation_id, created_at
from bz_agent_client_runs
order by thread_id, created_at, run_id
on conflict do nothing;

-- What the first answer to a turn said, but for what the request itself says again.
create table bz_agent_run_turns (
    run_id                 uuid primary key references bz_agent_client_runs,
    session_id             uuid not null,
    route_key              text collate "C" not null,
    client_conversation_id text collate "C" not null,
    client_turn_id         text collate "C" not null,
    user_message_id        text collate "C" not null,
    input_hash             bytea not null check (octet_length(input_hash) = 32), -- of the whole request
    user_input_hash        bytea not null check (octet_length(user_input_hash) = 32),
    page_context_hash      bytea check (octet_length(page_context_hash) = 32),
    instructions           text not null, -- the route's, as of the first answer
    -- Serves: the repetition of a turn.
    unique (session_id, route_key, client_conversation_id, client_turn_id)
);

create table bz_agent_run_completions (
    run_id               uuid primary key references bz_agent_client_runs,
    thread_id            bigint not null,
    assistant_message_id text collate "C" not null,
    request_hash         bytea not null check (octet_length(request_hash) = 32), -- of the whole request
    content_hash         bytea not null check (octet_length(content_hash) = 32),
    status               text not null check (status in ('completed', 'failed', 'cancelled')),
    model                text,
    runtime              text,
    usage                json, -- canonical, as it goes to administrators
    completed_at         timestamptz not null,
    -- Serves: finding a message id that another run of the thread has.
    unique (thread_id, assistant_message_id)
);

-- What a host says happened in a run: metadata only.
create table bz_agent_run_trace_events (
    run_id         uuid not null references bz_agent_client_runs,
    position       integer not null check (position between 1 and 2000),
    event_id       text collate "C" not null,
    event          text not null,
    occurred_at    text not null, -- RFC 3339 in UTC, with the digits that were sent
    job_id         uuid,
    metadata       json not null, -- canonical
    dropped_fields integer not null check (dropped_fields >= 0),
    event_hash     bytea not null check (octet_length(event_hash) = 32), -- of what is kept
    created_at     timestamptz not null,
    primary key (run_id, position), -- serves: the relay
    unique (run_id, event_id)       -- serves: the repetition of an event
);

-- A job belongs to one run.
create table bz_agent_run_jobs (
    job_id uuid primary key,
    run_id uuid not null references bz_agent_client_runs
);

grant select, insert on bz_agent_threads, bz_agent_run_turns, bz_agent_run_completions,
    bz_agent_run_trace_events, bz_agent_run_jobs to verbatim_ingest;
grant usage, update on sequence bz_agent_thread_numbers to verbatim_ingest;
grant update (stream_version) on bz_agent_client_runs to verbatim_ingest;
grant select on bz_agent_threads, bz_agent_run_turns, bz_agent_run_completions,
    bz_agent_run_trace_events, bz_agent_run_jobs to verbatim_ingest_reader;
