-- +goose Up

-- The registry: clients, routes, sessions and runs. What authorizes an append
-- (clients, routes, and sessions under their client) is guarded by advisory
-- locks: a writer of events holds the shared lock of every client and route it
-- relies on until it commits, and the triggers below take the exclusive one, so
-- a change waits for running appends only and later ones wait for it.

create table bz_clients (
    app_id              text collate "C" primary key check (app_id ~ '^[a-z0-9][a-z0-9_-]{1,63}$'),
    name                text not null,
    agent_authorize_url text,
    allowed_routes      text[] not null,
    enabled             boolean not null,
    created_at          timestamptz not null,
    updated_at          timestamptz not null
);

-- Tokens are tables of their own, so that a rotation takes no authorization lock.
create table bz_client_tokens (
    token_hash bytea primary key check (octet_length(token_hash) = 32),
    app_id     text collate "C" not null references bz_clients,
    created_at timestamptz not null
);
-- Serves: replacing a client's token.
create index bz_client_tokens_app_id on bz_client_tokens (app_id);

create table bz_routes (
    route_key    text collate "C" primary key check (route_key ~ '^[a-z0-9][a-z0-9_-]{1,63}$' and route_key <> 'auto'),
    name         text not null,
    enabled      boolean not null,
    agent_access boolean not null,
    audience     json,
    created_at   timestamptz not null,
    updated_at   timestamptz not null
);

create table bz_agent_sessions (
    session_id         uuid primary key,
    client_app_id      text collate "C" not null references bz_clients,
    device_label       text not null,
    principal          json not null,
    on_behalf_of       text not null,
    allowed_routes     text[] not null,
    refresh_expires_at timestamptz not null,
    revoked_at         timestamptz,
    created_at         timestamptz not null,
    updated_at         timestamptz not null
);

create table bz_agent_session_tokens (
    token_hash        bytea primary key check (octet_length(token_hash) = 32),
    session_id        uuid not null references bz_agent_sessions,
    access_expires_at timestamptz not null,
    created_at        timestamptz not null
);
-- Serves: replacing a session's token.
create index bz_agent_session_tokens_session_id on bz_agent_session_tokens (session_id);

create table bz_agent_client_runs (
    run_id                 uuid primary key,
    session_id             uuid not null references bz_agent_sessions,
    client_app_id          text collate "C" not null,
    route_key              text collate "C" not null,
    thread_id              bigint not null check (thread_id between 1 and 9007199254740991),
    client_conversation_id text collate "C" not null,
    client_turn_id         text collate "C" not null,
    stream_version         bigint not null check (stream_version >= 1),
    created_at             timestamptz not null
);

create function bz_lock_key(kind text, key text) returns bigint
    language sql immutable strict parallel safe
    return hashtextextended(kind || ':' || key, 0);

-- +goose StatementBegin
create function bz_guard_client() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' or (old.app_id, old.enabled, old.allowed_routes)
            is distinct from (new.app_id, new.enabled, new.allowed_routes) then
        perform pg_advisory_xact_lock(bz_lock_key('client', old.app_id));
    end if;
    if tg_op = 'DELETE' then
        return old;
    end if;
    return new;
end $$;
-- +goose StatementEnd
create trigger bz_guard_client before update or delete on bz_clients
    for each row execute function bz_guard_client();

-- +goose StatementBegin
create function bz_guard_route() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' or (old.route_key, old.enabled, old.agent_access, old.audience::text)
            is distinct from (new.route_key, new.enabled, new.agent_access, new.audience::text) then
        perform pg_advisory_xact_lock(bz_lock_key('route', old.route_key));
    end if;
    if tg_op = 'DELETE' then
        return old;
    end if;
    return new;
end $$;
-- +goose StatementEnd
create trigger bz_guard_route before update or delete on bz_routes
    for each row execute function bz_guard_route();

-- A session falls under its client's lock.
-- +goose StatementBegin
create function bz_guard_session() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' or (old.session_id, old.client_app_id, old.principal::text, old.on_behalf_of,
                            old.allowed_routes, old.refresh_expires_at, old.revoked_at)
            is distinct from (new.session_id, new.client_app_id, new.principal::text, new.on_behalf_of,
                              new.allowed_routes, new.refresh_expires_at, new.revoked_at) then
        perform pg_advisory_xact_lock(bz_lock_key('client', old.client_app_id));
    end if;
    if tg_op = 'DELETE' then
        return old;
    end if;
    return new;
end $$;
-- +goose StatementEnd
create trigger bz_guard_session before update or delete on bz_agent_sessions
    for each row execute function bz_guard_session();

grant select, insert, update on bz_clients, bz_routes, bz_agent_sessions to verbatim_ingest;
grant select, insert, delete on bz_client_tokens, bz_agent_session_tokens to verbatim_ingest;
grant select, insert on bz_agent_client_runs to verbatim_ingest;
grant select on bz_clients, bz_routes, bz_agent_sessions, bz_agent_client_runs to verbatim_ingest_reader;
