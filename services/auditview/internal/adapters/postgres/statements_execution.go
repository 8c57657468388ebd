package postgres

// Statements that write executions.
const (
	// What takes another one's place in its client's swarm ids is what an operator says is
	// right: that one was made after the backup from which ingest came back.
	sqlTakeSwarms = `
with gone as (
	delete from executions x
	using unnest($1::text[], $2::text[], $3::text[]) as u (id, client, swarm)
	where x.client_app_id = u.client and x.swarm_id = u.swarm and x.execution_id <> u.id::uuid
	returning x.execution_id
),
events as (delete from execution_events d using gone where d.execution_id = gone.execution_id),
tasks as (delete from execution_tasks d using gone where d.execution_id = gone.execution_id),
approvals as (delete from execution_approvals d using gone where d.execution_id = gone.execution_id),
grants as (delete from execution_grants d using gone where d.execution_id = gone.execution_id),
attempts as (delete from execution_callback_attempts d using gone where d.execution_id = gone.execution_id)
delete from execution_attributions d using gone where d.execution_id = gone.execution_id`

	sqlForgetAttributions = `delete from execution_attributions where execution_id = any($1::text[]::uuid[])`

	sqlDeleteExecutionEventsAbove = `
delete from execution_events e
using unnest($1::text[], $2::int[]) as x (id, keep)
where e.execution_id = x.id::uuid and e.position > x.keep`

	sqlDeleteAttemptsAbove = `
delete from execution_callback_attempts a
using unnest($1::text[], $2::int[]) as x (id, keep)
where a.execution_id = x.id::uuid and a.position > x.keep`

	sqlInsertExecutions = `
insert into executions (
	execution_id, client_app_id, swarm_id, manager_deployment_id, deployment_id, correlation_id, run_id,
	last_position, result, version, created_at, latest_at)
select a::uuid, b, c, d, e, f, g::uuid, h, i, j, k, l
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[],
	$8::int[], $9::text[], $10::bigint[], $11::timestamptz[], $12::timestamptz[])
	as u (a, b, c, d, e, f, g, h, i, j, k, l)`

	sqlReplaceExecutions = `
on conflict (execution_id) do update set
	client_app_id = excluded.client_app_id, swarm_id = excluded.swarm_id,
	manager_deployment_id = excluded.manager_deployment_id, deployment_id = excluded.deployment_id,
	correlation_id = excluded.correlation_id, run_id = excluded.run_id, last_position = excluded.last_position,
	result = excluded.result, version = excluded.version, created_at = excluded.created_at, latest_at = excluded.latest_at`

	sqlExtendExecutions = `
update executions x set
	version = u.version, last_position = coalesce(u.last, x.last_position),
	result = coalesce(u.result, x.result), latest_at = coalesce(u.latest, x.latest_at)
from unnest($1::text[], $2::bigint[], $3::int[], $4::int[], $5::text[], $6::timestamptz[])
	as u (id, version, before, last, result, latest)
where x.execution_id = u.id::uuid and (u.before is null or x.last_position = u.before)`

	sqlInsertExecutionEvents = `
insert into execution_events as stored (
	execution_id, position, event_id, event_type, occurred_at, task_id, agent_instance_id, agent_role, user_id, channel_id,
	payload, dropped_fields, dropped_count, recorded_at)
select a::uuid, b, c, d, e, f, g, h, i, j, k::json, string_to_array(l, ','), m, n
from unnest($1::text[], $2::int[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[],
	$11::text[], $12::text[], $13::int[], $14::timestamptz[])
	as u (a, b, c, d, e, f, g, h, i, j, k, l, m, n)`

	// As with the events of archives: the same event may be there from a part of a snapshot.
	sqlSameExecutionEvents = `
on conflict (execution_id, position) do update set recorded_at = excluded.recorded_at
where (stored.event_id, stored.event_type, stored.occurred_at, stored.task_id, stored.agent_instance_id, stored.agent_role,
	stored.user_id, stored.channel_id, stored.payload::text, stored.dropped_fields, stored.dropped_count, stored.recorded_at)
	is not distinct from (excluded.event_id, excluded.event_type, excluded.occurred_at, excluded.task_id,
	excluded.agent_instance_id, excluded.agent_role, excluded.user_id, excluded.channel_id, excluded.payload::text,
	excluded.dropped_fields, excluded.dropped_count, excluded.recorded_at)`

	sqlReplaceExecutionEvents = `
on conflict (execution_id, position) do update set
	event_id = excluded.event_id, event_type = excluded.event_type, occurred_at = excluded.occurred_at,
	task_id = excluded.task_id, agent_instance_id = excluded.agent_instance_id, agent_role = excluded.agent_role,
	user_id = excluded.user_id, channel_id = excluded.channel_id, payload = excluded.payload,
	dropped_fields = excluded.dropped_fields, dropped_count = excluded.dropped_count, recorded_at = excluded.recorded_at`

	sqlPutTasks = `
insert into execution_tasks as stored (
	execution_id, task_id, version, agent_role, model_id, input_tokens, output_tokens, total_tokens, tool_count,
	user_id, channel_id, used_at, facts)
select a::uuid, b, c, d, e, f, g, h, i, j, k, l, m::json
from unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[],
	$10::text[], $11::text[], $12::timestamptz[], $13::text[])
	as u (a, b, c, d, e, f, g, h, i, j, k, l, m)
on conflict (execution_id, task_id) do update set
	version = excluded.version, agent_role = excluded.agent_role, model_id = excluded.model_id,
	input_tokens = excluded.input_tokens, output_tokens = excluded.output_tokens, total_tokens = excluded.total_tokens,
	tool_count = excluded.tool_count, user_id = excluded.user_id, channel_id = excluded.channel_id,
	used_at = excluded.used_at, facts = excluded.facts
where excluded.version >= stored.version`

	sqlPutApprovals = `
insert into execution_approvals as stored (execution_id, approval_id, version, decision, facts)
select a::uuid, b, c, d, e::json
from unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::text[]) as u (a, b, c, d, e)
on conflict (execution_id, approval_id) do update set
	version = excluded.version, decision = excluded.decision, facts = excluded.facts
where excluded.version >= stored.version`

	sqlPutGrants = `
insert into execution_grants as stored (execution_id, grant_id, version, facts)
select a::uuid, b, c, d::json
from unnest($1::text[], $2::text[], $3::bigint[], $4::text[]) as u (a, b, c, d)
on conflict (execution_id, grant_id) do update set version = excluded.version, facts = excluded.facts
where excluded.version >= stored.version`

	sqlInsertAttempts = `
insert into execution_callback_attempts as stored (execution_id, position, attempt_id, event_id, facts)
select a::uuid, b, c, d, e::json
from unnest($1::text[], $2::int[], $3::text[], $4::text[], $5::text[]) as u (a, b, c, d, e)`

	sqlSameAttempts = `
on conflict (execution_id, position) do update set attempt_id = excluded.attempt_id
where (stored.attempt_id, stored.facts::text) is not distinct from (excluded.attempt_id, excluded.facts::text)`

	sqlReplaceAttempts = `
on conflict (execution_id, position) do update set
	attempt_id = excluded.attempt_id, event_id = excluded.event_id, facts = excluded.facts`

	sqlInsertAttributions = `
insert into execution_attributions (axis, value, execution_id)
select a, b, c::uuid from unnest($1::text[], $2::text[], $3::text[]) as u (a, b, c)
on conflict do nothing`

	sqlAttributionsOfEvents = `
insert into execution_attributions (axis, value, execution_id)
select 'user', user_id, execution_id from execution_events
where execution_id = any($1::text[]::uuid[]) and user_id is not null
union
select 'channel', channel_id, execution_id from execution_events
where execution_id = any($1::text[]::uuid[]) and channel_id is not null
on conflict do nothing`

	sqlExecutionIncomplete = `
select exists (
	select from unnest($1::text[], $2::int[], $3::int[], $4::int[], $5::int[], $6::int[])
		as x (id, last_position, tasks, approvals, grants, attempts)
	where x.last_position <> (select count(*) from execution_events e where e.execution_id = x.id::uuid)
		or x.attempts <> (select count(*) from execution_callback_attempts a where a.execution_id = x.id::uuid)
		or x.tasks > (select count(*) from execution_tasks t where t.execution_id = x.id::uuid)
		or x.approvals > (select count(*) from execution_approvals a where a.execution_id = x.id::uuid)
		or x.grants > (select count(*) from execution_grants g where g.execution_id = x.id::uuid)
)`
)

// sqlClearFacts deletes ranges of one kind of facts.
func sqlClearFacts(table, id string) string {
	return `
delete from ` + table + ` f
using unnest($1::text[], $2::text[], $3::text[]) as r (id, after, up_to)
where f.execution_id = r.id::uuid and f.` + id + ` > r.after and (r.up_to = '' or f.` + id + ` <= r.up_to)`
}

var (
	sqlClearTasks     = sqlClearFacts("execution_tasks", "task_id")
	sqlClearApprovals = sqlClearFacts("execution_approvals", "approval_id")
	sqlClearGrants    = sqlClearFacts("execution_grants", "grant_id")
)
