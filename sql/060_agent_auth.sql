-- +goose Up

-- Agent Auth v1: how an agent on a person's machine gets a session of its own
-- (loopback redirect with PKCE). All secrets are kept as SHA-256 and found by look-up.

create table bz_agent_authorizations (
    authorization_id uuid primary key,
    client_app_id    text collate "C" not null references bz_clients,
    redirect_uri     text not null,
    state            text not null,
    requested_routes text[] not null,
    device_label     text not null,
    code_challenge   text not null check (length(code_challenge) = 43),
    address          inet not null, -- who asked, for the bound on asking; an IPv6 address by its /64
    created_at       timestamptz not null,
    expires_at       timestamptz not null,
    decided_at       timestamptz,
    approved         boolean,
    principal        json,
    on_behalf_of     text,
    allowed_routes   text[],
    code_hash        bytea unique check (octet_length(code_hash) = 32), -- serves: the exchange
    code_expires_at  timestamptz,
    consumed_at      timestamptz,
    session_id       uuid references bz_agent_sessions,
    check ((decided_at is null) = (approved is null)),
    check ((approved is true) = (code_hash is not null)
        and (approved is true) = (code_expires_at is not null)
        and (approved is true) = (principal is not null)
        and (approved is true) = (on_behalf_of is not null)
        and (approved is true) = (allowed_routes is not null)),
    check ((consumed_at is null) = (session_id is null))
);
-- Serves: how many a client was asked for from an address.
create index bz_agent_authorizations_asked on bz_agent_authorizations (client_app_id, address, created_at);
-- Serves: the removal of a client's old ones.
create index bz_agent_authorizations_expired on bz_agent_authorizations (client_app_id, expires_at);

-- The refresh tokens of sessions. A used one stays, so that its return is noticed.
create table bz_agent_refresh_tokens (
    token_hash     bytea primary key check (octet_length(token_hash) = 32),
    session_id     uuid not null references bz_agent_sessions,
    created_at     timestamptz not null,
    expires_at     timestamptz not null, -- when the session is over, as of the token's issue
    used_at        timestamptz,
    successor_hash bytea check (octet_length(successor_hash) = 32),
    -- The access token that was issued with the refresh token.
    access_hash    bytea not null check (octet_length(access_hash) = 32),
    check ((used_at is null) = (successor_hash is null))
);
-- Serves: the removal of the tokens of sessions that are over.
create index bz_agent_refresh_tokens_expired on bz_agent_refresh_tokens (expires_at);

grant select, insert, update, delete on bz_agent_authorizations to verbatim_ingest;
grant select, insert, update, delete on bz_agent_refresh_tokens to verbatim_ingest;
