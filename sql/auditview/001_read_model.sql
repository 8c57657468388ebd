-- +goose Up

-- What administrators read, projected from ingest's messages. Everything here can be
-- built again from ingest. No foreign keys across streams: a run link may arrive
-- before its run.

-- How far each stream is applied. The row is the stream's lock: whoever projects a
-- stream locks it first, in key order.
create table streams (
    stream_kind text collate "C" not null,
    stream_id   text collate "C" not null,
    version     bigint not null default 0 check (version >= 0), -- 0: nothing applied yet
    -- Serves: locking a batch's streams, and the version check.
    primary key (stream_kind, stream_id)
) with (fillfactor = 70); -- every batch updates versions in place

-- Messages that can never be applied as they are, and the later ones of their streams.
create table parked_messages (
    stream_kind text collate "C" not null,
    stream_id   text collate "C" not null,
    version     bigint not null check (version >= 1),
    part        integer not null check (part >= 0), -- 0: not a part of a snapshot
    type        text not null,
    event       text not null,  -- the CloudEvent's JSON, byte for byte
    error       text,           -- null: it waits for an earlier message of its stream
    parked_at   timestamptz not null,
    -- Serves: the parked messages of a stream, in order.
    primary key (stream_kind, stream_id, version, part)
);

-- The header of each archive.
create table archives (
    conversation_id        uuid primary key, -- serves: one archive's detail
    client_archive_id      uuid not null,
    client_conversation_id text collate "C" not null,
    creator_session_id     uuid not null,
    client_app_id          text collate "C" not null,
    route_key              text collate "C" not null,
    membership_version     smallint not null check (membership_version in (1, 2)),
    member_count           integer not null,
    state                  text not null check (state in ('enrolling', 'ready')),
    confirmed_count        integer not null check (confirmed_count between 1 and member_count),
    last_sequence          integer not null check (last_sequence >= 0),
    message_count          integer not null,
    turn_count             integer not null,
    last_turn_status       text,
    text_bytes             bigint not null,
    created_at             timestamptz not null,
    updated_at             timestamptz not null
) with (fillfactor = 70); -- every append updates the header in place

-- Serves: the list, newest first.
create index archives_newest on archives (updated_at desc, conversation_id desc);

create table archive_members (
    conversation_id uuid not null,
    session_id      uuid not null,
    display_label   text not null,
    client_app_id   text collate "C", -- the binding of a member, absent in version 1
    route_key       text collate "C",
    client_name     text,
    confirmed_at    timestamptz,
    principal       json,             -- json, not jsonb: it comes back byte for byte
    on_behalf_of    text,
    -- Serves: the members of one archive, in order, and the confirmation of one.
    primary key (conversation_id, session_id),
    check ((confirmed_at is null) = (principal is null)
        and (confirmed_at is null) = (on_behalf_of is null))
);

create table archive_events (
    conversation_id   uuid not null,
    sequence          integer not null check (sequence >= 1),
    event_id          text collate "C" not null,
    client_turn_id    text collate "C" not null,
    kind              text not null,
    content           text,
    status            text,
    run_id            uuid,
    member_session_id uuid,
    thread_id         bigint,
    created_at        timestamptz not null,
    -- Serves: a page of one archive's events.
    primary key (conversation_id, sequence)
);

-- The archive, member and turn that a run belongs to, from the archives' run links.
create table run_links (
    run_id            uuid primary key, -- serves: the trace of a run; one run, one archive
    conversation_id   uuid not null,
    sequence          integer not null,
    member_session_id uuid not null,
    client_turn_id    text collate "C" not null,
    thread_id         bigint not null
);

-- Serves: replacing the links of one archive by a snapshot's.
create index run_links_archive on run_links (conversation_id);

create table runs (
    run_id                 uuid primary key, -- serves: the trace of a run
    session_id             uuid not null,
    client_app_id          text collate "C" not null,
    route_key              text collate "C" not null,
    thread_id              bigint not null check (thread_id >= 0), -- 0: no thread
    client_conversation_id text collate "C" not null,
    client_turn_id         text collate "C" not null,
    created_at             timestamptz not null
);

grant select, insert, update, delete
    on streams, parked_messages, archives, archive_members, archive_events, run_links, runs
    to verbatim_auditview;
grant select
    on streams, parked_messages, archives, archive_members, archive_events, run_links, runs
    to verbatim_auditview_reader;
