package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"verbatim.internal/pkg/contracts/runv1"
	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/pkg/domain/run"
	"verbatim.internal/pkg/platform/transport"
	"verbatim.internal/services/ingest/internal/adapters/outbox"
	"verbatim.internal/services/ingest/internal/app"
)

const (
	// Numbers that imported runs took are passed over in one statement, however many there
	// are. No row comes back when a rival took the number, or made this very thread, since
	// the statement began: an import takes no lock of the conversation.
	insertThread = `
		with recursive drawn as (
			select nextval('bz_agent_thread_numbers') as n
			union all
			select nextval('bz_agent_thread_numbers') from drawn
			where exists (select from bz_agent_threads t where t.thread_id = drawn.n)
				or exists (select from bz_agent_client_runs r where r.thread_id = drawn.n)
		)
		insert into bz_agent_threads (thread_id, session_id, route_key, client_conversation_id, created_at)
		select n, $1, $2, $3, $4 from drawn
		where not exists (select from bz_agent_threads t where t.thread_id = drawn.n)
			and not exists (select from bz_agent_client_runs r where r.thread_id = drawn.n)
		on conflict do nothing
		returning thread_id`

	insertRun = `
		insert into bz_agent_client_runs (run_id, session_id, client_app_id, route_key, thread_id, client_conversation_id,
			client_turn_id, stream_version, created_at)
		values ($1, $2, $3, $4, $5, $6, $7, 1, $8)`
	insertTurn = `
		insert into bz_agent_run_turns (run_id, session_id, route_key, client_conversation_id, client_turn_id, user_message_id,
			input_hash, user_input_hash, page_context_hash, instructions)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`
	insertCompletion = `
		insert into bz_agent_run_completions (run_id, thread_id, assistant_message_id, request_hash, content_hash, status,
			model, runtime, usage, completed_at)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`
	insertTraceEvents = `
		insert into bz_agent_run_trace_events (run_id, position, event_id, event, occurred_at, job_id, metadata,
			dropped_fields, event_hash, created_at)
		select $1, q.position, q.event_id, q.event, q.occurred_at, q.job_id, q.metadata::json, q.dropped_fields, q.event_hash, $10
		from unnest($2::int[], $3::text[], $4::text[], $5::text[], $6::uuid[], $7::text[], $8::int[], $9::bytea[])
			as q (position, event_id, event, occurred_at, job_id, metadata, dropped_fields, event_hash)`
	// In order, so that rivals wait for each other and not in a circle.
	insertJobs = `
		insert into bz_agent_run_jobs (job_id, run_id)
		select j, $1 from unnest($2::uuid[]) as j
		where not exists (select from bz_agent_run_jobs k where k.job_id = j and k.run_id = $1)
		order by j`
	updateRunVersion = `update bz_agent_client_runs set stream_version = $2 where run_id = $1`
)

// NewThread implements [app.RunTx].
func (t runTransaction) NewThread(ctx context.Context, session identity.UUID, routeKey, conversation string, now time.Time) (int64, error) {
	var thread int64
	for thread == 0 {
		err := t.read(ctx, func(b *pgx.Batch) {
			b.Queue(insertThread, session, routeKey, conversation, now).Query(func(rows pgx.Rows) error { return scanOne(rows, &thread) })
			b.Queue(threadOfConversation, session, routeKey, conversation).Query(func(rows pgx.Rows) error { return scanOne(rows, &thread) })
		})
		if err != nil {
			return 0, err
		}
	}
	return thread, nil
}

// InsertTurn implements [app.RunTx].
func (t runTransaction) InsertTurn(opened app.Opened, turn run.Turn) error {
	r := opened.Run
	t.writes.Queue(insertRun, r.RunID, r.SessionID, r.Binding.ClientAppID, r.Binding.RouteKey, r.ThreadID,
		r.ClientConversationID, r.ClientTurnID, r.CreatedAt)
	t.writes.Queue(insertTurn, r.RunID, r.SessionID, r.Binding.RouteKey, r.ClientConversationID, r.ClientTurnID,
		turn.UserMessageID, turn.InputHash[:], turn.UserInputHash[:], turn.PageContextHash, opened.Instructions)
	t.queueRunMessage(r.RunID, 1, runv1.TypeRecorded, `{}`, 0, r.CreatedAt)
	return nil
}

// InsertCompletion implements [app.RunTx].
func (t runTransaction) InsertCompletion(r app.OwnRun, c run.Completion, now time.Time) error {
	t.writes.Queue(insertCompletion, r.RunID, r.ThreadID, c.AssistantMessageID, c.RequestHash[:], c.ContentHash[:], string(c.Status),
		notEmpty(c.Model), notEmpty(c.Runtime), notEmpty(string(c.Usage)), now)
	t.writes.Queue(updateRunVersion, r.RunID, r.StreamVersion+1)
	t.queueRunMessage(r.RunID, r.StreamVersion+1, runv1.TypeCompleted, `{}`, len(c.Model)+len(c.Runtime)+len(c.Usage), now)
	return nil
}

// InsertTrace implements [app.RunTx].
func (t runTransaction) InsertTrace(r app.OwnRun, fresh []run.TraceEvent, now time.Time) error {
	const each = 256 // ids, names and times
	n := len(fresh)
	positions, dropped := make([]int32, n), make([]int32, n)
	ids, events, times, metadata := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	jobs, hashes := make([]*string, n), make([][]byte, n)
	textBytes := 0
	for i := range fresh {
		e := &fresh[i]
		positions[i], dropped[i] = int32(e.Position), int32(e.DroppedFields) //nolint:gosec // at most run.MaxTraceEvents, and what a body can hold
		ids[i], events[i], times[i], metadata[i] = e.EventID, e.Event, e.OccurredAt, string(e.Metadata)
		jobs[i], hashes[i] = notEmpty(string(e.JobID)), e.Hash[:]
		textBytes += each + len(e.Metadata)
	}
	if known := jobsOf(fresh); len(known) > 0 {
		t.writes.Queue(insertJobs, r.RunID, known)
	}
	t.writes.Queue(insertTraceEvents, r.RunID, positions, ids, events, times, jobs, metadata, dropped, hashes, now)
	t.writes.Queue(updateRunVersion, r.RunID, r.StreamVersion+1)
	payload, err := outbox.TracePayload{FirstPosition: fresh[0].Position, LastPosition: fresh[n-1].Position}.Marshal()
	if err != nil {
		return fmt.Errorf("write the outbox message: %w", err)
	}
	t.queueRunMessage(r.RunID, r.StreamVersion+1, runv1.TypeTraceRecorded, payload, textBytes, now)
	return nil
}

func (t runTransaction) queueRunMessage(id identity.UUID, version int64, messageType, payload string, textBytes int, now time.Time) {
	partition := transport.Partition(string(id))
	t.writes.Queue(insertOutbox, partition, runv1.StreamKind, id, version, messageType, payload, textBytes, t.trace, now)
	t.partitions = append(t.partitions, partition)
}
