-- +goose Up

-- A number that changes with everything that authorizes: what was read about clients,
-- routes and sessions under their locks still holds while the number is the same. It is a
-- sequence, so that changes of different clients do not wait for each other; one that
-- is rolled back has moved it too, which costs a reading and nothing else.
create sequence bz_authorization_epoch;
-- The first value of a sequence looks like none; from now on each one differs from the last.
select nextval('bz_authorization_epoch');

-- Called under the exclusive lock of what changes, by whoever may change that.
create function bz_move_authorization_epoch() returns void
    language sql security definer set search_path from current
    as $$ select nextval('bz_authorization_epoch') $$;

-- +goose StatementBegin
create or replace function bz_guard_client() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' or (old.app_id, old.enabled, old.allowed_routes)
            is distinct from (new.app_id, new.enabled, new.allowed_routes) then
        perform pg_advisory_xact_lock(bz_lock_key('client', old.app_id));
        perform bz_move_authorization_epoch();
    end if;
    if tg_op = 'DELETE' then
        return old;
    end if;
    return new;
end $$;
-- +goose StatementEnd

-- +goose StatementBegin
create or replace function bz_guard_route() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' or (old.route_key, old.enabled, old.agent_access, old.audience::text)
            is distinct from (new.route_key, new.enabled, new.agent_access, new.audience::text) then
        perform pg_advisory_xact_lock(bz_lock_key('route', old.route_key));
        perform bz_move_authorization_epoch();
    end if;
    if tg_op = 'DELETE' then
        return old;
    end if;
    return new;
end $$;
-- +goose StatementEnd

-- +goose StatementBegin
create or replace function bz_guard_session() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' or (old.session_id, old.client_app_id, old.principal::text, old.on_behalf_of,
                            old.allowed_routes, old.refresh_expires_at, old.revoked_at)
            is distinct from (new.session_id, new.client_app_id, new.principal::text, new.on_behalf_of,
                              new.allowed_routes, new.refresh_expires_at, new.revoked_at) then
        perform pg_advisory_xact_lock(bz_lock_key('client', old.client_app_id));
        perform bz_move_authorization_epoch();
    end if;
    if tg_op = 'DELETE' then
        return old;
    end if;
    return new;
end $$;
-- +goose StatementEnd

grant select on sequence bz_authorization_epoch to verbatim_ingest;
