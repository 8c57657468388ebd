package postgres

// Statements that write archives.
const (
	sqlDeleteEventsAbove = `
delete from archive_events e
using unnest($1::text[], $2::int[]) as r (id, keep)
where e.conversation_id = r.id::uuid and e.sequence > r.keep`

	sqlLinksOfEvents = `
insert into run_links (run_id, conversation_id, sequence, member_session_id, client_turn_id, thread_id)
select run_id, conversation_id, sequence, member_session_id, client_turn_id, thread_id
from archive_events
where conversation_id = any($1::text[]::uuid[]) and kind = 'run_link'`

	sqlIncomplete = `
select exists (
	select from unnest($1::text[], $2::int[]) as r (id, last_sequence)
	where r.last_sequence <> (select count(*) from archive_events e where e.conversation_id = r.id::uuid)
)`

	sqlInsertArchives = `
insert into archives (
	conversation_id, client_archive_id, client_conversation_id, creator_session_id, client_app_id, route_key,
	membership_version, member_count, created_at,
	state, confirmed_count, last_sequence, message_count, turn_count, last_turn_status, text_bytes, updated_at)
select a::uuid, b::uuid, c, d::uuid, e, f, g, h, i, j, k, l, m, n, o, p, q
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::int[], $8::int[], $9::timestamptz[],
	$10::text[], $11::int[], $12::int[], $13::int[], $14::int[], $15::text[], $16::bigint[], $17::timestamptz[])
	as u (a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q)`

	sqlReplaceArchives = `
on conflict (conversation_id) do update set
	client_archive_id = excluded.client_archive_id, client_conversation_id = excluded.client_conversation_id,
	creator_session_id = excluded.creator_session_id, client_app_id = excluded.client_app_id,
	route_key = excluded.route_key, membership_version = excluded.membership_version,
	member_count = excluded.member_count, created_at = excluded.created_at, state = excluded.state,
	confirmed_count = excluded.confirmed_count, last_sequence = excluded.last_sequence,
	message_count = excluded.message_count, turn_count = excluded.turn_count,
	last_turn_status = excluded.last_turn_status, text_bytes = excluded.text_bytes, updated_at = excluded.updated_at`

	sqlUpdateStates = `
update archives a set
	state = u.state, confirmed_count = u.confirmed_count, last_sequence = u.last_sequence,
	message_count = u.message_count, turn_count = u.turn_count, last_turn_status = u.last_turn_status,
	text_bytes = u.text_bytes, updated_at = u.updated_at
from unnest($1::text[], $2::int[],
	$3::text[], $4::int[], $5::int[], $6::int[], $7::int[], $8::text[], $9::bigint[], $10::timestamptz[])
	as u (id, before, state, confirmed_count, last_sequence, message_count, turn_count, last_turn_status, text_bytes, updated_at)
where a.conversation_id = u.id::uuid and a.last_sequence = u.before`

	sqlInsertMembers = `
insert into archive_members (
	conversation_id, session_id, display_label, client_app_id, route_key, client_name, confirmed_at, principal, on_behalf_of)
select a::uuid, b::uuid, c, d, e, f, g, h::json, i
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::timestamptz[], $8::text[], $9::text[])
	as u (a, b, c, d, e, f, g, h, i)`

	sqlConfirmMembers = `
update archive_members m set
	display_label = u.label, client_app_id = u.client_app_id, route_key = u.route_key, client_name = u.client_name,
	confirmed_at = u.confirmed_at, principal = u.principal::json, on_behalf_of = u.on_behalf_of
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::timestamptz[], $8::text[], $9::text[])
	as u (id, session_id, label, client_app_id, route_key, client_name, confirmed_at, principal, on_behalf_of)
where m.conversation_id = u.id::uuid and m.session_id = u.session_id::uuid`

	sqlInsertEvents = `
insert into archive_events as stored (
	conversation_id, sequence, event_id, client_turn_id, kind, content, status, run_id, member_session_id, thread_id, created_at)
select a::uuid, b, c, d, e, f, g, h::uuid, i::uuid, j, k
from unnest($1::text[], $2::int[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[],
	$10::bigint[], $11::timestamptz[])
	as u (a, b, c, d, e, f, g, h, i, j, k)`

	// An event may be there already, from a part of a snapshot that was never completed;
	// another event in its place is left alone, which the count of rows shows.
	sqlSameEvents = `
on conflict (conversation_id, sequence) do update set created_at = excluded.created_at
where (stored.event_id, stored.client_turn_id, stored.kind, stored.content, stored.status,
	stored.run_id, stored.member_session_id, stored.thread_id, stored.created_at)
	is not distinct from (excluded.event_id, excluded.client_turn_id, excluded.kind, excluded.content, excluded.status,
	excluded.run_id, excluded.member_session_id, excluded.thread_id, excluded.created_at)`

	sqlReplaceEvents = `
on conflict (conversation_id, sequence) do update set
	event_id = excluded.event_id, client_turn_id = excluded.client_turn_id, kind = excluded.kind,
	content = excluded.content, status = excluded.status, run_id = excluded.run_id,
	member_session_id = excluded.member_session_id, thread_id = excluded.thread_id, created_at = excluded.created_at`

	sqlInsertLinks = `
insert into run_links (run_id, conversation_id, sequence, member_session_id, client_turn_id, thread_id)
select a::uuid, b::uuid, c, d::uuid, e, f
from unnest($1::text[], $2::text[], $3::int[], $4::text[], $5::text[], $6::bigint[]) as u (a, b, c, d, e, f)`
)
