-- +goose Up

-- The transactional outbox. A row names what was committed and never repeats a
-- text; it is written by the statement that writes what it names, and deleted
-- once auditview has acknowledged it. Within a stream, ids are in commit order,
-- because a writer takes the stream's lock before it draws an id; between
-- streams, order means nothing.
create table outbox (
    partition     smallint not null check (partition between 0 and 15),
    id            bigint generated always as identity,
    stream_kind   text not null,
    stream_id     text not null,
    version       bigint not null check (version >= 1),
    type          text not null,
    payload       json not null,
    text_bytes    integer not null check (text_bytes >= 0),
    trace_context text,
    created_at    timestamptz not null,
    -- Serves: the relay's next batch of a partition, and the deletion of one.
    primary key (partition, id)
) with (
    -- A queue's table is nearly all dead rows: keep its index short.
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_scale_factor = 0,
    autovacuum_vacuum_cost_delay = 0
);

grant select, insert, delete on outbox to verbatim_ingest;
grant select on outbox to verbatim_ingest_reader;
