package postgres

import "strings"

// statements are the SQL texts of the archive's tables.
type statements struct {
	lockArchiveBindings string
	archiveByID         string
	archiveByKey        string
	members             string
	membersByKey        string
	insertArchive       string
	insertMembers       string
}

// Column expressions of migration 058. Where the schema is not known to have
// them they are looked up by name in each row, so that the answer is right on
// both sides of the migration, also while another replica already uses it.
var (
	withBindings = strings.NewReplacer(
		"{a.membership_version}", "a.membership_version",
		"{m.client_app_id}", "m.client_app_id",
		"{m.route_key}", "m.route_key",
		"{m.client_name}", "m.client_name",
		"{+version}", ", membership_version", "{+$version}", ", $12",
		"{+binding}", ", client_app_id, route_key, client_name",
		"{+q.binding}", ", q.client_app_id, q.route_key, q.client_name",
		"{+$binding}", ", $8::text[], $9::text[], $10::text[]",
		"{q+binding}", ", client_app_id, route_key, client_name",
	)
	withoutBindings = strings.NewReplacer(
		"{a.membership_version}", "coalesce((to_jsonb(a) ->> 'membership_version')::smallint, 1::smallint)",
		"{m.client_app_id}", "(to_jsonb(m) ->> 'client_app_id')",
		"{m.route_key}", "(to_jsonb(m) ->> 'route_key')",
		"{m.client_name}", "(to_jsonb(m) ->> 'client_name')",
		"{+version}", "", "{+$version}", "",
		"{+binding}", "", "{+q.binding}", "", "{+$binding}", "", "{q+binding}", "",
	)
	statements058 = newStatements(withBindings)
	statements057 = newStatements(withoutBindings)
)

func statementsFor(memberBindings bool) *statements {
	if memberBindings {
		return statements058
	}
	return statements057
}

const headerColumns = `a.conversation_id, a.client_archive_id, a.client_conversation_id, a.creator_session_id,
	a.client_app_id, a.route_key, {a.membership_version}, a.request_hash, a.state, a.confirmed_count,
	a.last_sequence, a.message_count, a.turn_count, coalesce(a.last_turn_status, ''),
	coalesce(a.current_turn_id, ''), a.text_bytes, a.stream_version, a.created_at, a.updated_at`

// factColumns are what a member check needs; every one is null where the fact does not exist.
const factColumns = `s.client_app_id, s.principal::text, s.on_behalf_of, s.allowed_routes, s.refresh_expires_at, s.revoked_at,
	c.name, c.allowed_routes, c.enabled, r.enabled, r.agent_access, r.audience::text`

const memberColumns = `m.session_id, coalesce(m.label, ''), {m.client_app_id}, {m.route_key}, coalesce({m.client_name}, ''),
	m.confirmed_at, m.principal::text, m.on_behalf_of, m.identity_hash, ` + factColumns

const memberJoins = `
	from bz_agent_conversation_audits a
	join bz_agent_conversation_members m on m.conversation_id = a.conversation_id
	left join bz_agent_sessions s on s.session_id = m.session_id
	left join bz_clients c on c.app_id = coalesce({m.client_app_id}, a.client_app_id)
	left join bz_routes r on r.route_key = coalesce({m.route_key}, a.route_key)`

const (
	byID  = ` where a.conversation_id = $1`
	byKey = ` where a.creator_session_id = $1 and a.route_key = $2 and a.client_archive_id = $3`
)

func newStatements(r *strings.Replacer) *statements {
	return &statements{
		// A member's binding never changes, so it may be read before it is locked.
		lockArchiveBindings: r.Replace(`
			select pg_advisory_xact_lock_shared(l.lock), l.lock from (
				select distinct b.kind, b.key, bz_lock_key(b.kind, b.key) as lock
				from bz_agent_conversation_audits a
				join bz_agent_conversation_members m on m.conversation_id = a.conversation_id
				cross join lateral (values
					('client', coalesce({m.client_app_id}, a.client_app_id)),
					('route', coalesce({m.route_key}, a.route_key))) as b (kind, key)` + byID + `
				order by b.kind, b.key
			) l`),
		archiveByID:  r.Replace(`select ` + headerColumns + ` from bz_agent_conversation_audits a` + byID + ` for no key update`),
		archiveByKey: r.Replace(`select ` + headerColumns + ` from bz_agent_conversation_audits a` + byKey),
		members:      r.Replace(`select ` + memberColumns + memberJoins + byID + ` order by m.session_id`),
		membersByKey: r.Replace(`select ` + memberColumns + memberJoins + byKey + ` order by m.session_id`),
		insertArchive: r.Replace(`
			insert into bz_agent_conversation_audits (conversation_id, client_archive_id, client_conversation_id,
				creator_session_id, client_app_id, route_key, request_hash, state, member_count, confirmed_count,
				last_sequence, message_count, turn_count, text_bytes, stream_version, created_at, updated_at{+version})
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 0, 0, 0, 0, 1, $11, $11{+$version})`),
		insertMembers: r.Replace(`
			insert into bz_agent_conversation_members (conversation_id, session_id, label, confirmed_at, principal,
				on_behalf_of, identity_hash{+binding})
			select $1, q.session_id, q.label, q.confirmed_at, q.principal::json, q.on_behalf_of, q.identity_hash{+q.binding}
			from unnest($2::uuid[], $3::text[], $4::timestamptz[], $5::text[], $6::text[], $7::bytea[]{+$binding})
				as q (session_id, label, confirmed_at, principal, on_behalf_of, identity_hash{q+binding})`),
	}
}

// Statements that no migration changes.
const (
	lockBindings = `
		select pg_advisory_xact_lock_shared(bz_lock_key(l.kind, l.key))
		from unnest($1::text[], $2::text[]) as l (kind, key)`
	lockCreation = `select pg_advisory_xact_lock(bz_lock_key('creation', $1))`

	factsByBinding = `
		select q.session_id, ` + factColumns + `
		from unnest($1::uuid[], $2::text[], $3::text[]) as q (session_id, client_app_id, route_key)
		left join bz_agent_sessions s on s.session_id = q.session_id
		left join bz_clients c on c.app_id = q.client_app_id
		left join bz_routes r on r.route_key = q.route_key`

	storedEvents = `
		select sequence, event_id, client_turn_id, kind, coalesce(content, ''), coalesce(status, ''), run_id, member_session_id
		from bz_agent_conversation_events
		where conversation_id = $1 and sequence between $2 and $3`
	usedEventIDs = `
		select event_id, sequence from bz_agent_conversation_events
		where conversation_id = $1 and event_id = any($2::text[])`
	startedTurns = `
		select client_turn_id from bz_agent_conversation_events
		where conversation_id = $1 and kind = 'turn_start' and client_turn_id = any($2::text[])`
	linkedRuns = `
		select r.run_id, r.session_id, r.client_app_id, r.route_key, r.thread_id, r.client_conversation_id,
			r.client_turn_id, r.created_at, l.run_id is not null
		from bz_agent_client_runs r
		left join bz_agent_conversation_run_links l on l.run_id = r.run_id
		where r.run_id = any($1::uuid[])`

	updateMember = `
		update bz_agent_conversation_members
		set confirmed_at = $3, principal = $4, on_behalf_of = $5, identity_hash = $6
		where conversation_id = $1 and session_id = $2`
	updateEnrolment = `
		update bz_agent_conversation_audits
		set state = $2, confirmed_count = $3, stream_version = $4, updated_at = $5
		where conversation_id = $1`

	outboxColumns = `(partition, stream_kind, stream_id, version, type, payload, text_bytes, trace_context, created_at)`
	insertOutbox  = `insert into outbox ` + outboxColumns + ` values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`

	// insertEventsIf writes new events, none of them a run link, with the header and the
	// outbox message: in one statement, so that {if} decides about all of them.
	insertEventsIf = `
		with header as (
			update bz_agent_conversation_audits
			set last_sequence = $9, message_count = $10, turn_count = $11, last_turn_status = $12, current_turn_id = $13,
				text_bytes = $14, stream_version = $15, updated_at = $8
			where conversation_id = $1{if}
			returning conversation_id
		), events as (
			insert into bz_agent_conversation_events (conversation_id, sequence, event_id, client_turn_id, kind, content, status, created_at)
			select h.conversation_id, $2::int - 1 + e.n, e.event_id, e.client_turn_id, e.kind, nullif(e.content, ''), nullif(e.status, ''), $8
			from header h, unnest($3::text[], $4::text[], $5::text[], $6::text[], $7::text[])
				with ordinality as e (event_id, client_turn_id, kind, content, status, n)
		)
		insert into outbox ` + outboxColumns + `
		select $16::smallint, $17, h.conversation_id::text, $15, $18, $19::json, $20::int, $21, $8 from header h`
	// recalledHolds is true while nothing has changed that was recalled: the header, what
	// authorizes its members, and the server whose numbers these are; and while the token is good.
	recalledHolds = ` and stream_version = $15 - 1 and updated_at = $22
				and exists (select from bz_agent_session_tokens where token_hash = $23 and access_expires_at > $8)
				and (select last_value from bz_authorization_epoch) = $24 and pg_postmaster_start_time() = $25`

	lockRecalled = `select pg_advisory_xact_lock_shared(l.lock) from unnest($1::bigint[]) as l (lock)`
	readEpoch    = `select last_value, pg_postmaster_start_time() from bz_authorization_epoch`

	insertEventsWithLinks = `
		with e as materialized (
			select * from unnest($2::int[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::uuid[], $9::uuid[], $10::bigint[])
				as e (sequence, event_id, client_turn_id, kind, content, status, run_id, member_session_id, thread_id)
		), events as (
			insert into bz_agent_conversation_events (conversation_id, sequence, event_id, client_turn_id, kind, content,
				status, run_id, member_session_id, thread_id, created_at)
			select $1, sequence, event_id, client_turn_id, kind, content, status, run_id, member_session_id, thread_id, $11 from e
		), links as (
			insert into bz_agent_conversation_run_links (run_id, conversation_id, sequence)
			select run_id, $1, sequence from e where run_id is not null order by run_id
		), header as (
			update bz_agent_conversation_audits
			set last_sequence = $12, message_count = $13, turn_count = $14, last_turn_status = $15, current_turn_id = $16,
				text_bytes = $17, stream_version = $18, updated_at = $11
			where conversation_id = $1
		)
		insert into outbox ` + outboxColumns + `
		values ($19, $20, $1::uuid::text, $18, $21, $22, $23, $24, $11)`
)

var (
	insertEvents   = strings.Replace(insertEventsIf, "{if}", "", 1)
	insertRecalled = strings.Replace(insertEventsIf, "{if}", recalledHolds, 1)
)
