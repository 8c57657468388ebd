-- +goose Up

-- The registry over HTTP: who may change it, and what was changed.

-- What a route's agents are told to do; no part of what authorizes.
alter table bz_routes add column instructions text;

create table bz_controllers (
    name        text collate "C" primary key check (name ~ '^[a-z0-9][a-z0-9_-]{1,63}$'),
    permissions text[] not null,
    created_at  timestamptz not null,
    updated_at  timestamptz not null
);

create table bz_controller_tokens (
    token_hash bytea primary key check (octet_length(token_hash) = 32), -- serves: the bearer of a request
    controller text collate "C" not null references bz_controllers,
    created_at timestamptz not null
);
-- Serves: replacing a controller's token.
create index bz_controller_tokens_controller on bz_controller_tokens (controller);

-- Every change of the registry, append-only by grant: who, when and what, never a
-- secret. The numbers of one entry's changes are in commit order, because its row is
-- locked when the number is drawn.
create table bz_registry_changes (
    change_id   uuid primary key,
    number      bigint generated always as identity unique,
    kind        text not null check (kind in ('client', 'route', 'session', 'run', 'controller')),
    name        text collate "C" not null,
    action      text not null check (action in ('created', 'updated', 'revoked')),
    fields      text[] not null,
    changes     json not null, -- [{"field", "from", "to"}] of fields whose values may be shown
    actor_kind  text not null check (actor_kind in ('operator', 'controller', 'client', 'session', 'system')),
    actor_name  text collate "C" not null,
    recorded_at timestamptz not null
);

-- Serve: the lists of the control API, of one client's sessions and of all.
create index bz_agent_sessions_client on bz_agent_sessions (client_app_id, session_id);

grant select, insert, update on bz_controllers to verbatim_ingest;
grant select, insert, delete on bz_controller_tokens to verbatim_ingest;
grant select, insert on bz_registry_changes to verbatim_ingest;
grant select on bz_controllers, bz_registry_changes to verbatim_ingest_reader;
