-- +goose Up

-- Executions: the facts from which the audit record is built when it is read.

create table executions (
    execution_id          uuid primary key,
    client_app_id         text collate "C" not null,
    swarm_id              text collate "C" not null,
    manager_deployment_id text collate "C",
    deployment_id         text collate "C",
    correlation_id        text collate "C",
    run_id                uuid,
    last_position         integer not null,
    result                text not null check (result in ('success', 'failed', 'blocked', 'stopped', 'info')),
    version               bigint not null, -- the stream's: what an ETag stands on
    created_at            timestamptz not null,
    latest_at             timestamptz not null, -- of the latest stored event, else created_at
    -- Serves: the resolution of a swarm id.
    unique (swarm_id, client_app_id)
) with (fillfactor = 70); -- every batch updates it in place
-- Serve: the resolution of the other ids.
create index executions_deployment on executions (deployment_id) where deployment_id is not null;
create index executions_correlation on executions (correlation_id) where correlation_id is not null;
create index executions_manager on executions (manager_deployment_id) where manager_deployment_id is not null;
create index executions_run on executions (run_id) where run_id is not null;
-- Serves: the list, the latest stored event first.
create index executions_latest on executions (latest_at desc, execution_id desc);
-- Serve: the list of one client, and of one result.
create index executions_client on executions (client_app_id, latest_at desc, execution_id desc);
create index executions_result on executions (result, latest_at desc, execution_id desc);

create table execution_events (
    execution_id      uuid not null,
    position          integer not null check (position >= 1),
    event_id          text collate "C" not null,
    event_type        text not null,
    occurred_at       text not null,
    task_id           text collate "C",
    agent_instance_id text collate "C",
    agent_role        text collate "C",
    user_id           text collate "C",
    channel_id        text collate "C",
    payload           json not null,
    dropped_fields    text[] not null,
    dropped_count     integer not null,
    recorded_at       timestamptz not null,
    -- Serves: every page, the last like the first.
    primary key (execution_id, position)
);
-- Serves: the task graph, of whose hand-overs and retries only events tell.
create index execution_events_graph on execution_events (execution_id, position)
    where event_type like 'handoff.%' or event_type = 'task.retried';

create table execution_tasks (
    execution_id  uuid not null,
    task_id       text collate "C" not null,
    version       bigint not null,
    agent_role    text collate "C",
    model_id      text collate "C",
    input_tokens  bigint,
    output_tokens bigint,
    total_tokens  bigint,
    tool_count    bigint,
    user_id       text collate "C",
    channel_id    text collate "C",
    used_at       timestamptz not null, -- what usage is counted by
    facts         json not null,        -- all of the task
    -- Serves: the facts of a page's events, and the task graph.
    primary key (execution_id, task_id)
);
-- Serve: the list by role and by model.
create index execution_tasks_role on execution_tasks (agent_role, execution_id) where agent_role is not null;
create index execution_tasks_model on execution_tasks (model_id, execution_id) where model_id is not null;
-- Serve: the list by user and by channel.
create index execution_tasks_user on execution_tasks (user_id, execution_id) where user_id is not null;
create index execution_tasks_channel on execution_tasks (channel_id, execution_id) where channel_id is not null;
-- Serves: usage over a time.
create index execution_tasks_used on execution_tasks (used_at);

-- Who and through which channel an execution was said to act, by its opening and its
-- events, which never change. What its tasks say is theirs.
create table execution_attributions (
    axis         text not null check (axis in ('user', 'channel')),
    value        text collate "C" not null,
    execution_id uuid not null,
    -- Serves: the list by user and by channel.
    primary key (axis, value, execution_id)
);
-- Serves: a snapshot that makes them anew.
create index execution_attributions_execution on execution_attributions (execution_id);

create table execution_approvals (
    execution_id uuid not null,
    approval_id  text collate "C" not null,
    version      bigint not null,
    decision     text check (decision in ('approved', 'rejected')),
    facts        json not null,
    primary key (execution_id, approval_id)
);

create table execution_grants (
    execution_id uuid not null,
    grant_id     text collate "C" not null,
    version      bigint not null,
    facts        json not null,
    primary key (execution_id, grant_id)
);

create table execution_callback_attempts (
    execution_id uuid not null,
    position     integer not null,
    attempt_id   text collate "C" not null,
    event_id     text collate "C",
    facts        json not null,
    primary key (execution_id, position)
);

grant select, insert, update, delete on executions, execution_events, execution_tasks, execution_attributions,
    execution_approvals, execution_grants, execution_callback_attempts to verbatim_auditview;
grant select on executions, execution_events, execution_tasks, execution_attributions,
    execution_approvals, execution_grants, execution_callback_attempts to verbatim_auditview_reader;
