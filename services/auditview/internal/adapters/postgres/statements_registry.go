package postgres

// Statements that write changes of the registry.
const (
	sqlFreeNumbers = `
delete from registry_changes r
using unnest($1::text[], $2::bigint[]) as u (id, number)
where r.number = u.number and r.change_id <> u.id::uuid`

	sqlInsertRegistryChanges = `
insert into registry_changes (change_id, number, kind, name, action, fields, changes, actor_kind, actor_name, recorded_at)
select a::uuid, b, c, d, e, f::text[], g::json, h, i, j
from unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[],
	$10::timestamptz[])
	as u (a, b, c, d, e, f, g, h, i, j)`

	sqlReplaceRegistryChanges = `
on conflict (change_id) do update set
	number = excluded.number, kind = excluded.kind, name = excluded.name, action = excluded.action, fields = excluded.fields,
	changes = excluded.changes, actor_kind = excluded.actor_kind, actor_name = excluded.actor_name, recorded_at = excluded.recorded_at`
)
