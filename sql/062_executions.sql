-- +goose Up

-- Executions: orchestrated runs of many sub-agents, ingested as facts. Metadata only.

create table bz_executions (
    execution_id          uuid primary key,
    client_app_id         text collate "C" not null references bz_clients,
    swarm_id              text collate "C" not null,
    manager_deployment_id text collate "C",
    deployment_id         text collate "C",
    correlation_id        text collate "C",
    run_id                uuid references bz_agent_client_runs, -- the authorization run that it belongs to
    user_id               text collate "C", -- who opened it, by the attribution headers
    channel_id            text collate "C",
    last_position         integer not null default 0 check (last_position between 0 and 1000000),
    task_count            integer not null default 0 check (task_count between 0 and 100000),
    stream_version        bigint not null check (stream_version >= 1),
    created_at            timestamptz not null,
    -- Serves: every call of an orchestrator.
    unique (client_app_id, swarm_id)
) with (fillfactor = 70); -- every call updates it in place

-- Append-only by grant. position counts 1, 2, 3 … in the order of storage. No foreign
-- key: an execution is never deleted, its row is locked by every writer, and a check per
-- event would cost more than the insert.
create table bz_execution_events (
    execution_id      uuid not null,
    position          integer not null check (position between 1 and 1000000),
    event_id          text collate "C" not null,
    event_type        text not null,
    occurred_at       text not null, -- RFC 3339 in UTC, with the digits that were sent
    task_id           text collate "C",
    agent_instance_id text collate "C",
    agent_role        text collate "C", -- by the attribution headers
    user_id           text collate "C",
    channel_id        text collate "C",
    payload           json not null,    -- canonical
    dropped_fields    text[] not null,  -- names, sorted
    dropped_count     integer not null check (dropped_count >= cardinality(dropped_fields)),
    event_hash        bytea not null check (octet_length(event_hash) = 32), -- of what is kept
    recorded_at       timestamptz not null,
    primary key (execution_id, position), -- serves: the relay
    unique (execution_id, event_id)       -- serves: the repetition of an event
);

-- The last that was said of a task, an approval, a grant. version is the stream's at
-- that change; facts are the canonical JSON that goes to auditview.
create table bz_execution_tasks (
    execution_id uuid not null references bz_executions,
    task_id      text collate "C" not null,
    version      bigint not null,
    facts        json not null,
    recorded_at  timestamptz not null,
    primary key (execution_id, task_id)
);
create table bz_execution_approvals (
    execution_id uuid not null references bz_executions,
    approval_id  text collate "C" not null,
    version      bigint not null,
    decided      boolean not null,
    facts        json not null,
    recorded_at  timestamptz not null,
    primary key (execution_id, approval_id)
);
create table bz_execution_grants (
    execution_id uuid not null references bz_executions,
    grant_id     text collate "C" not null,
    version      bigint not null,
    revoked      boolean not null,
    facts        json not null,
    recorded_at  timestamptz not null,
    primary key (execution_id, grant_id)
);

-- Append-only by grant. Of a URL only scheme, host and port, and the SHA-256 of the whole.
create table bz_execution_callback_attempts (
    execution_id uuid not null,
    position     integer not null check (position >= 1),
    attempt_id   text collate "C" not null,
    facts        json not null,
    recorded_at  timestamptz not null,
    primary key (execution_id, position),
    unique (execution_id, attempt_id)
);

grant select, insert on bz_executions, bz_execution_events, bz_execution_tasks, bz_execution_approvals,
    bz_execution_grants, bz_execution_callback_attempts to verbatim_ingest;
grant update (last_position, task_count, stream_version) on bz_executions to verbatim_ingest;
grant update (version, facts, recorded_at) on bz_execution_tasks to verbatim_ingest;
grant update (version, decided, facts, recorded_at) on bz_execution_approvals to verbatim_ingest;
grant update (version, revoked, facts, recorded_at) on bz_execution_grants to verbatim_ingest;
grant select on bz_executions, bz_execution_events, bz_execution_tasks, bz_execution_approvals,
    bz_execution_grants, bz_execution_callback_attempts to verbatim_ingest_reader;
