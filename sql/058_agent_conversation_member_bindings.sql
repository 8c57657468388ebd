-- +goose Up

-- Cross-system member bindings (contract: Core 0.7.0). Older archives stay v1,
-- with nulls in the members' new columns; nothing is moved or rewritten.
alter table bz_agent_conversation_audits
    add column membership_version smallint not null default 1 check (membership_version in (1, 2));

alter table bz_agent_conversation_members
    add column client_app_id text collate "C",
    add column route_key     text collate "C",
    add column client_name   text,
    add check ((client_app_id is null) = (route_key is null) and (client_app_id is null) = (client_name is null));
