package postgres

// Statements that write runs. The first two also work before migration 003.
const (
	sqlInsertRuns = `
insert into runs (run_id, session_id, client_app_id, route_key, thread_id, client_conversation_id, client_turn_id, created_at)
select a::uuid, b::uuid, c, d, e, f, g, h
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::text[], $7::text[], $8::timestamptz[])
	as u (a, b, c, d, e, f, g, h)`

	sqlReplaceRuns = `
on conflict (run_id) do update set
	session_id = excluded.session_id, client_app_id = excluded.client_app_id, route_key = excluded.route_key,
	thread_id = excluded.thread_id, client_conversation_id = excluded.client_conversation_id,
	client_turn_id = excluded.client_turn_id, created_at = excluded.created_at`

	sqlReplaceWholeRuns = `
insert into runs (run_id, session_id, client_app_id, route_key, thread_id, client_conversation_id, client_turn_id, created_at,
	status, model, runtime, usage, completed_at, last_position)
select a::uuid, b::uuid, c, d, e, f, g, h, i, j, k, l::json, m, n
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::text[], $7::text[], $8::timestamptz[],
	$9::text[], $10::text[], $11::text[], $12::text[], $13::timestamptz[], $14::int[])
	as u (a, b, c, d, e, f, g, h, i, j, k, l, m, n)` + sqlReplaceRuns + `,
	status = excluded.status, model = excluded.model, runtime = excluded.runtime, usage = excluded.usage,
	completed_at = excluded.completed_at, last_position = excluded.last_position`

	sqlCompleteRuns = `
update runs r set
	status = u.status, model = u.model, runtime = u.runtime, usage = u.usage::json, completed_at = u.completed_at
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[])
	as u (id, status, model, runtime, usage, completed_at)
where r.run_id = u.id::uuid and r.status = 'running'`

	sqlExtendTraces = `
update runs r set last_position = u.last
from unnest($1::text[], $2::int[], $3::int[]) as u (id, before, last)
where r.run_id = u.id::uuid and r.last_position = u.before`

	sqlDeleteTraceAbove = `
delete from run_trace_events e
using unnest($1::text[], $2::int[]) as r (id, keep)
where e.run_id = r.id::uuid and e.position > r.keep`

	sqlTraceIncomplete = `
select exists (
	select from unnest($1::text[], $2::int[]) as r (id, last_position)
	where r.last_position <> (select count(*) from run_trace_events e where e.run_id = r.id::uuid)
)`

	sqlInsertTraceEvents = `
insert into run_trace_events as stored (
	run_id, position, event_id, event, occurred_at, job_id, metadata, dropped_fields, created_at)
select a::uuid, b, c, d, e, f::uuid, g::json, h, i
from unnest($1::text[], $2::int[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::int[], $9::timestamptz[])
	as u (a, b, c, d, e, f, g, h, i)`

	// As with the events of archives: the same event may be there from a part of a snapshot.
	sqlSameTraceEvents = `
on conflict (run_id, position) do update set created_at = excluded.created_at
where (stored.event_id, stored.event, stored.occurred_at, stored.job_id, stored.metadata::text, stored.dropped_fields, stored.created_at)
	is not distinct from (excluded.event_id, excluded.event, excluded.occurred_at, excluded.job_id, excluded.metadata::text,
	excluded.dropped_fields, excluded.created_at)`

	sqlReplaceTraceEvents = `
on conflict (run_id, position) do update set
	event_id = excluded.event_id, event = excluded.event, occurred_at = excluded.occurred_at, job_id = excluded.job_id,
	metadata = excluded.metadata, dropped_fields = excluded.dropped_fields, created_at = excluded.created_at`

	sqlHasTraces = `select to_regclass('run_trace_events') is not null`
)
