-- +goose Up

-- The conversation archive (contract: Agent Conversation Audit v1).
create table bz_agent_conversation_audits (
    conversation_id        uuid primary key,
    client_archive_id      uuid not null,
    client_conversation_id text collate "C" not null,
    creator_session_id     uuid not null,
    client_app_id          text collate "C" not null,
    route_key              text collate "C" not null,
    request_hash           bytea not null check (octet_length(request_hash) = 32),
    state                  text not null check (state in ('enrolling', 'ready')),
    member_count           integer not null check (member_count between 1 and 64),
    confirmed_count        integer not null check (confirmed_count between 1 and member_count),
    last_sequence          integer not null check (last_sequence between 0 and 20000),
    message_count          integer not null check (message_count >= 0),
    turn_count             integer not null check (turn_count >= 0),
    last_turn_status       text check (last_turn_status in ('running', 'completed', 'failed', 'cancelled')),
    current_turn_id        text collate "C",
    text_bytes             bigint not null check (text_bytes between 0 and 16777216),
    stream_version         bigint not null check (stream_version >= 1),
    created_at             timestamptz not null,
    updated_at             timestamptz not null,
    -- Serves: the idempotency of creation.
    unique (creator_session_id, route_key, client_archive_id)
) with (fillfactor = 70); -- every append updates the header in place

create table bz_agent_conversation_members (
    conversation_id uuid not null references bz_agent_conversation_audits,
    session_id      uuid not null, -- no foreign key: a v1 member need not exist yet
    label           text,
    confirmed_at    timestamptz,
    principal       json,
    on_behalf_of    text,
    identity_hash   bytea check (octet_length(identity_hash) = 32),
    primary key (conversation_id, session_id),
    check ((confirmed_at is null) = (principal is null)
        and (confirmed_at is null) = (on_behalf_of is null)
        and (confirmed_at is null) = (identity_hash is null))
);

-- Append-only: the service may insert and select events, nothing else. No foreign
-- key: an archive is never deleted (no role of the service may), its row is locked
-- by every writer, and a check per event would cost more than the insert.
create table bz_agent_conversation_events (
    conversation_id   uuid not null,
    sequence          integer not null check (sequence between 1 and 20000),
    event_id          text collate "C" not null,
    client_turn_id    text collate "C" not null,
    kind              text not null
        check (kind in ('turn_start', 'user_message', 'assistant_message', 'run_link', 'turn_end')),
    content           text,
    status            text check (status in ('completed', 'failed', 'cancelled')),
    run_id            uuid,
    member_session_id uuid,
    thread_id         bigint,
    created_at        timestamptz not null,
    primary key (conversation_id, sequence),
    -- Serves: finding an event id that a batch uses again.
    unique (conversation_id, event_id),
    check ((content is not null) = (kind in ('user_message', 'assistant_message'))),
    check ((status is not null) = (kind = 'turn_end')),
    check ((run_id is not null) = (kind = 'run_link')
        and (member_session_id is not null) = (kind = 'run_link')
        and (thread_id is not null) = (kind = 'run_link'))
);
-- Serves: whether a turn of a batch has started; and that a turn starts once.
create unique index bz_agent_conversation_events_turn_start
    on bz_agent_conversation_events (conversation_id, client_turn_id) where kind = 'turn_start';

-- A run belongs to at most one archive.
create table bz_agent_conversation_run_links (
    run_id          uuid primary key,
    conversation_id uuid not null,
    sequence        integer not null
);

grant select, insert on bz_agent_conversation_audits, bz_agent_conversation_members,
    bz_agent_conversation_events, bz_agent_conversation_run_links to verbatim_ingest;
grant update (state, confirmed_count, last_sequence, message_count, turn_count, last_turn_status,
    current_turn_id, text_bytes, stream_version, updated_at) on bz_agent_conversation_audits to verbatim_ingest;
grant update (confirmed_at, principal, on_behalf_of, identity_hash) on bz_agent_conversation_members to verbatim_ingest;
grant select on bz_agent_conversation_audits, bz_agent_conversation_members,
    bz_agent_conversation_events, bz_agent_conversation_run_links to verbatim_ingest_reader;
