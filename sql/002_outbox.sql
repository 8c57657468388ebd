-- +goose Up

-- The transactional outbox. A row names what was committed and never repeats a
-- text; it is written by the statement that writes what it names, and deleted
-- once auditview has acknowledged it. Within a stream, ids are in commit order,
-- because a writer takes the stream's lock before it draws an id; between
-- streams, order means nothing.
create table outbox (
    partition     smallint not null check (partition between 0 and 15),
    id            bigint generated always as identity,
    -- The checks are the envelope's own rules: a row that could not be put into an
    -- envelope would stop its partition.
    stream_kind   text not null check (stream_kind ~ '^[a-z][a-z0-9_]{0,31}$'),
    stream_id     text not null check (stream_id ~ '^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$'),
    version       bigint not null check (version between 1 and 2147483647),
    type          text not null check (length(type) <= 128 and type ~ '^[a-z][a-z0-9_]*(\.[a-z0-9_]+){1,7}$'),
    payload       json not null,
    text_bytes    integer not null check (text_bytes >= 0),
    trace_context text check (trace_context ~ '^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$'),
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
