-- +goose Up

-- Runs with their completion and trace, the threads that they make, and the changes of
-- the registry.

alter table runs
    add column status        text not null default 'running'
        check (status in ('running', 'completed', 'failed', 'cancelled')),
    add column model         text,
    add column runtime       text,
    add column usage         json, -- json, not jsonb: it comes back byte for byte
    add column completed_at  timestamptz,
    -- Events above it belong to a snapshot that is not complete.
    add column last_position integer not null default 0 check (last_position >= 0),
    add check ((status = 'running') = (completed_at is null));
alter table runs set (fillfactor = 70); -- completion and trace update a run in place

-- Serves: the list of threads, the latest first, and the runs of one thread in order.
create index runs_thread on runs (thread_id desc, created_at, run_id);

create table run_trace_events (
    run_id         uuid not null,
    position       integer not null check (position >= 1),
    event_id       text collate "C" not null,
    event          text not null,
    occurred_at    text not null,
    job_id         uuid,
    metadata       json not null,
    dropped_fields integer not null,
    created_at     timestamptz not null,
    -- Serves: the trace of a run.
    primary key (run_id, position)
);
-- Serves: the trace of a job.
create index run_trace_events_job on run_trace_events (job_id, position) where job_id is not null;

create table registry_changes (
    change_id   uuid primary key,
    number      bigint not null unique, -- serves: the list, the latest first
    kind        text not null,
    name        text collate "C" not null,
    action      text not null,
    fields      text[] not null,
    changes     json not null,
    actor_kind  text not null,
    actor_name  text collate "C" not null,
    recorded_at timestamptz not null
);
-- Serve: the lists of one kind, of one name and of one entry, each the latest first.
create index registry_changes_kind on registry_changes (kind, number desc);
create index registry_changes_name on registry_changes (name, number desc);
create index registry_changes_entry on registry_changes (kind, name, number desc);

grant select, insert, update, delete on run_trace_events, registry_changes to verbatim_auditview;
grant select on run_trace_events, registry_changes to verbatim_auditview_reader;
