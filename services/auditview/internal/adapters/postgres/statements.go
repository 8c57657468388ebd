package postgres

// Statements of the projection. Each takes a set of rows as arrays. Identifiers travel as
// text and become uuid here.
const (
	sqlSetVersions = `
update streams s set version = u.version
from unnest($1::text[], $2::text[], $3::bigint[]) as u (kind, id, version)
where s.stream_kind = u.kind and s.stream_id = u.id`

	sqlUnpark = `
delete from parked_messages p
using unnest($1::text[], $2::text[], $3::bigint[], $4::int[]) as u (kind, id, version, part)
where p.stream_kind = u.kind and p.stream_id = u.id
	and (u.part = 0 and p.version <= u.version or u.part > 0 and p.version = u.version and p.part = u.part)`

	// A message that comes again keeps its place and the time at which it was parked first.
	sqlPark = `
insert into parked_messages (stream_kind, stream_id, version, part, type, event, error, parked_at)
select u.*, $8::timestamptz
from unnest($1::text[], $2::text[], $3::bigint[], $4::int[], $5::text[], $6::text[], $7::text[]) as u
on conflict (stream_kind, stream_id, version, part) do update set
	type = excluded.type, event = excluded.event, error = coalesce(excluded.error, parked_messages.error)`
)
