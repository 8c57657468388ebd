-- +goose Up

-- Who may read, applied from a file by an operator. No administrator is ever removed by
-- it: one without a permission sees nothing.
create table administrators (
    name        text collate "C" primary key,
    permissions text[] not null,
    created_at  timestamptz not null,
    updated_at  timestamptz not null
);

create table administrator_tokens (
    token_hash    bytea primary key check (octet_length(token_hash) = 32), -- serves: the bearer of a request
    administrator text collate "C" not null references administrators (name) on delete cascade,
    created_at    timestamptz not null
);

-- Serves: whether an administrator has a token, and replacing it.
create index administrator_tokens_owner on administrator_tokens (administrator);

grant select, insert, update on administrators to verbatim_auditview;
grant select, insert, delete on administrator_tokens to verbatim_auditview;
grant select on administrators to verbatim_auditview_reader;
