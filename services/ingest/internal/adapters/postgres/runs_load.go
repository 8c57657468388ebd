package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/pkg/domain/run"
	"verbatim.internal/services/ingest/internal/app"
)

// runTransaction implements [app.RunTx] on a transaction.
type runTransaction struct{ *transaction }

const (
	lockThread = `select pg_advisory_xact_lock(bz_lock_key('thread', $1))`

	factsOfBearer = `
		select ` + factColumns + `, %s
		from bz_agent_sessions s
		left join bz_clients c on c.app_id = $2
		left join bz_routes r on r.route_key = $3
		where s.session_id = $1`

	threadOfConversation = `
		select thread_id from bz_agent_threads
		where session_id = $1 and route_key = $2 and client_conversation_id = $3`
	turnByKey = `
		select t.run_id, r.client_app_id, r.thread_id, r.created_at, t.input_hash, t.instructions
		from bz_agent_run_turns t
		join bz_agent_client_runs r on r.run_id = t.run_id
		where t.session_id = $1 and t.route_key = $2 and t.client_conversation_id = $3 and t.client_turn_id = $4`

	// Other sessions' runs are neither found nor locked.
	lockRun = `
		select run_id, session_id, client_app_id, route_key, thread_id, client_conversation_id, client_turn_id, created_at, stream_version
		from bz_agent_client_runs where run_id = $1 and session_id = $2 for no key update`
	completionOfRun = `select request_hash, completed_at from bz_agent_run_completions where run_id = $1`
	messageOfThread = `
		select exists (
			select from bz_agent_run_completions c
			join bz_agent_client_runs r on r.thread_id = c.thread_id
			where r.run_id = $1 and c.assistant_message_id = $2 and c.run_id <> $1)`

	lastPosition    = `select coalesce(max(position), 0) from bz_agent_run_trace_events where run_id = $1`
	usedTraceEvents = `select event_id, event_hash from bz_agent_run_trace_events where run_id = $1 and event_id = any($2::text[])`
	knownJobs       = `select job_id, run_id from bz_agent_run_jobs where job_id = any($1::uuid[])`
)

var (
	turnFacts   = fmt.Sprintf(factsOfBearer, `coalesce(r.instructions, '')`)
	callerFacts = fmt.Sprintf(factsOfBearer, `''`)
)

// LoadTurn implements [app.RunTx].
func (t runTransaction) LoadTurn(ctx context.Context, bearer identity.Bearer, routeKey string, turn run.Turn) (app.LoadedTurn, error) {
	var out app.LoadedTurn
	binding := identity.Binding{ClientAppID: bearer.ClientAppID, RouteKey: routeKey}
	conversation := []any{bearer.SessionID, routeKey, turn.ClientConversationID}
	err := t.read(ctx, func(b *pgx.Batch) {
		b.Queue(lockBindings, []string{"client", "route"}, []string{bearer.ClientAppID, routeKey})
		b.Queue(lockThread, string(bearer.SessionID)+"/"+routeKey+"/"+turn.ClientConversationID)
		b.Queue(turnFacts, bearer.SessionID, bearer.ClientAppID, routeKey).Query(func(rows pgx.Rows) error {
			return scanBearer(rows, bearer.SessionID, binding, &out.Facts, &out.Instructions)
		})
		b.Queue(threadOfConversation, conversation...).Query(func(rows pgx.Rows) error {
			return scanOne(rows, &out.ThreadID)
		})
		b.Queue(turnByKey, append(conversation, turn.ClientTurnID)...).Query(func(rows pgx.Rows) error {
			var err error
			out.Stored, err = scanTurn(rows, bearer.SessionID, routeKey, turn)
			return err
		})
	})
	return out, err
}

func scanTurn(rows pgx.Rows, session identity.UUID, routeKey string, turn run.Turn) (*app.StoredTurn, error) {
	var stored *app.StoredTurn
	for rows.Next() {
		s := app.StoredTurn{Opened: app.Opened{Run: identity.Run{
			SessionID: session, Binding: identity.Binding{RouteKey: routeKey},
			ClientConversationID: turn.ClientConversationID, ClientTurnID: turn.ClientTurnID,
		}}}
		var hash []byte
		if err := rows.Scan(&s.Run.RunID, &s.Run.Binding.ClientAppID, &s.Run.ThreadID, &s.Run.CreatedAt, &hash, &s.Instructions); err != nil {
			return nil, fmt.Errorf("read a turn: %w", err)
		}
		if err := asHash(&s.InputHash, hash); err != nil {
			return nil, err
		}
		stored = &s
	}
	return stored, rows.Err()
}

// queueRun queues what every write about one run begins with: the lock of its client, its
// caller, and its row under a lock.
func (t runTransaction) queueRun(b *pgx.Batch, bearer identity.Bearer, runID identity.UUID, caller *identity.Facts, own **app.OwnRun) {
	b.Queue(lockBindings, []string{"client"}, []string{bearer.ClientAppID})
	b.Queue(callerFacts, bearer.SessionID, bearer.ClientAppID, "").Query(func(rows pgx.Rows) error {
		var none string
		return scanBearer(rows, bearer.SessionID, identity.Binding{ClientAppID: bearer.ClientAppID}, caller, &none)
	})
	b.Queue(lockRun, runID, bearer.SessionID).Query(func(rows pgx.Rows) error {
		var r app.OwnRun
		found, err := scanRow(rows, &r.RunID, &r.SessionID, &r.Binding.ClientAppID, &r.Binding.RouteKey, &r.ThreadID,
			&r.ClientConversationID, &r.ClientTurnID, &r.CreatedAt, &r.StreamVersion)
		if found {
			*own = &r
		}
		return err
	})
}

// LoadCompletion implements [app.RunTx].
func (t runTransaction) LoadCompletion(ctx context.Context, bearer identity.Bearer, runID identity.UUID, messageID string) (app.LoadedCompletion, error) {
	var out app.LoadedCompletion
	err := t.read(ctx, func(b *pgx.Batch) {
		t.queueRun(b, bearer, runID, &out.Caller, &out.Run)
		b.Queue(completionOfRun, runID).Query(func(rows pgx.Rows) error {
			var hash []byte
			var at time.Time
			found, err := scanRow(rows, &hash, &at)
			if err != nil || !found {
				return err
			}
			out.History.Stored, out.CompletedAt = new([32]byte), at
			return asHash(out.History.Stored, hash)
		})
		b.Queue(messageOfThread, runID, messageID).Query(func(rows pgx.Rows) error {
			return scanOne(rows, &out.History.MessageUsed)
		})
	})
	return out, err
}

// LoadTrace implements [app.RunTx].
func (t runTransaction) LoadTrace(ctx context.Context, bearer identity.Bearer, runID identity.UUID, batch []run.TraceEvent) (app.LoadedTrace, error) {
	var out app.LoadedTrace
	ids := make([]string, len(batch))
	for i, e := range batch {
		ids[i] = e.EventID
	}
	h := &out.History
	err := t.read(ctx, func(b *pgx.Batch) {
		t.queueRun(b, bearer, runID, &out.Caller, &out.Run)
		b.Queue(lastPosition, runID).Query(func(rows pgx.Rows) error { return scanOne(rows, &h.LastPosition) })
		b.Queue(usedTraceEvents, runID, ids).Query(func(rows pgx.Rows) error { return scanTraceHashes(rows, h) })
		if jobs := jobsOf(batch); len(jobs) > 0 {
			b.Queue(knownJobs, jobs).Query(func(rows pgx.Rows) error { return scanJobs(rows, h) })
		}
	})
	return out, err
}

// jobsOf returns the distinct jobs of the events, in order.
func jobsOf(events []run.TraceEvent) []string {
	var jobs []string
	for _, e := range events {
		if e.JobID != "" {
			jobs = append(jobs, string(e.JobID))
		}
	}
	slices.Sort(jobs)
	return slices.Compact(jobs)
}

func scanTraceHashes(rows pgx.Rows, h *run.TraceHistory) error {
	h.Stored = make(map[string][32]byte)
	for rows.Next() {
		var id string
		var stored []byte
		var hash [32]byte
		if err := rows.Scan(&id, &stored); err != nil {
			return fmt.Errorf("read a trace event: %w", err)
		}
		if err := asHash(&hash, stored); err != nil {
			return err
		}
		h.Stored[id] = hash
	}
	return rows.Err()
}

func scanJobs(rows pgx.Rows, h *run.TraceHistory) error {
	h.Jobs = make(map[identity.UUID]identity.UUID)
	for rows.Next() {
		var job, owner identity.UUID
		if err := rows.Scan(&job, &owner); err != nil {
			return fmt.Errorf("read a job: %w", err)
		}
		h.Jobs[job] = owner
	}
	return rows.Err()
}

// scanBearer reads the facts about a bearer, and one text that follows them.
func scanBearer(rows pgx.Rows, session identity.UUID, b identity.Binding, out *identity.Facts, text *string) error {
	var f facts
	found, err := scanRow(rows, append(f.dest(), text)...)
	if err != nil || !found {
		return err
	}
	*out, err = f.identity(session, b)
	return err
}

// scanOne reads one column of at most one row; no row leaves dest as it is.
func scanOne(rows pgx.Rows, dest any) error {
	_, err := scanRow(rows, dest)
	return err
}

// scanRow reads at most one row and reports whether there was one.
func scanRow(rows pgx.Rows, dest ...any) (found bool, err error) {
	for rows.Next() {
		if err := rows.Scan(dest...); err != nil {
			return false, fmt.Errorf("read a row: %w", err)
		}
		found = true
	}
	return found, rows.Err()
}

func asHash(dest *[32]byte, stored []byte) error {
	if copy(dest[:], stored) != len(dest) {
		return errors.New("a stored hash is too short")
	}
	return nil
}
