package outbox

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5"

	"verbatim.internal/pkg/contracts/executionv1"
)

const (
	executionColumns = `execution_id::text, client_app_id, swarm_id, coalesce(manager_deployment_id, ''), coalesce(deployment_id, ''),
		coalesce(correlation_id, ''), coalesce(run_id::text, ''), coalesce(user_id, ''), coalesce(channel_id, ''), created_at`
	executionEventColumns = `e.position, e.event_id, e.event_type, e.occurred_at, coalesce(e.task_id, ''), coalesce(e.agent_instance_id, ''),
		coalesce(e.agent_role, ''), coalesce(e.user_id, ''), coalesce(e.channel_id, ''), e.payload::text, e.dropped_fields, e.dropped_count,
		e.recorded_at`
	attemptColumns = `e.position, e.attempt_id, e.facts::text, e.recorded_at`
)

const (
	executionsByID = `select ` + executionColumns + ` from bz_executions where execution_id = any($1::uuid[])`
	// The lateral joins read each range by the primary key.
	ofRanges = ` from unnest($1::int[], $2::uuid[], $3::int[], $4::int[]) as r (n, id, low, high)
		cross join lateral (
			select * from `
	inRange = ` where execution_id = r.id and position between r.low and r.high
		) e order by r.n, e.position`
	executionEventsByRange = `select r.n, ` + executionEventColumns + ofRanges + `bz_execution_events` + inRange
	attemptsByRange        = `select r.n, ` + attemptColumns + ofRanges + `bz_execution_callback_attempts` + inRange
)

// factsByName reads facts of one kind. Those of a later version than the row's are not
// sent, and not read.
func factsByName(table, id string) string {
	return `select r.n, e.version, case when e.version = r.version then e.facts::text end, e.recorded_at
		from unnest($1::int[], $2::uuid[], $3::text[], $4::bigint[]) as r (n, id, name, version)
		join ` + table + ` e on e.execution_id = r.id and e.` + id + ` = r.name`
}

// factTables are the tables of facts that a later word replaces, by the type of their message.
var factTables = []struct{ eventType, table, id string }{
	{executionv1.TypeTaskRecorded, "bz_execution_tasks", "task_id"},
	{executionv1.TypeApprovalRecorded, "bz_execution_approvals", "approval_id"},
	{executionv1.TypeGrantRecorded, "bz_execution_grants", "grant_id"},
}

// executionFacts are what rows name of executions, but for the opened ones by the row's index.
type executionFacts struct {
	opened   map[string]executionv1.Execution
	events   map[int][]executionv1.Event
	attempts map[int][]executionv1.CallbackAttempt
	words    map[int]word
}

func newExecutionFacts() executionFacts {
	return executionFacts{
		opened: map[string]executionv1.Execution{}, events: map[int][]executionv1.Event{},
		attempts: map[int][]executionv1.CallbackAttempt{}, words: map[int]word{},
	}
}

// word is the last that was said of a task, an approval or a grant.
type word struct {
	id      string
	version int64
	facts   *string // nil: not read
	at      time.Time
}

// ranges are what rows name by positions.
type ranges struct {
	indexes     []int // of the rows
	ids         []string
	lows, highs []int
}

// factNames are what rows name of one kind of facts.
type factNames struct {
	indexes    []int // of the rows
	ids, names []string
	versions   []int64
}

// executionNames are what rows name of executions.
type executionNames struct {
	opened           []string
	events, attempts ranges
	facts            map[string]*factNames // by the type of the message
}

func (n *executionNames) any() bool {
	return len(n.opened)+len(n.events.ids)+len(n.attempts.ids)+len(n.facts) > 0
}

func (n *executionNames) add(i int, r row) {
	switch r.eventType {
	case executionv1.TypeOpened:
		n.opened = append(n.opened, r.streamID)
	case executionv1.TypeEventsRecorded:
		n.events.add(i, r)
	case executionv1.TypeCallbacksRecorded:
		n.attempts.add(i, r)
	default:
		name := r.factID()
		if name == "" {
			return
		}
		if n.facts == nil {
			n.facts = map[string]*factNames{}
		}
		f := n.facts[r.eventType]
		if f == nil {
			f = &factNames{}
			n.facts[r.eventType] = f
		}
		f.indexes, f.ids = append(f.indexes, i), append(f.ids, r.streamID)
		f.names, f.versions = append(f.names, name), append(f.versions, r.version)
	}
}

func (n *ranges) add(i int, r row) {
	if p, err := parsePayload[rangePayload](r); err == nil && p.inRange() {
		n.indexes, n.ids = append(n.indexes, i), append(n.ids, r.streamID)
		n.lows, n.highs = append(n.lows, p.FirstPosition), append(n.highs, p.LastPosition)
	}
}

// factID returns the id of the fact that the row names, "" for none.
func (r row) factID() string {
	p, _ := parsePayload[factPayload](r)
	switch r.eventType {
	case executionv1.TypeTaskRecorded:
		return p.TaskID
	case executionv1.TypeApprovalRecorded:
		return p.ApprovalID
	default:
		return p.GrantID
	}
}

func (n *executionNames) queue(b *pgx.Batch, f *executionFacts) {
	if len(n.opened) > 0 {
		b.Queue(executionsByID, n.opened).Query(f.scanOpened)
	}
	if r := n.events; len(r.ids) > 0 {
		b.Queue(executionEventsByRange, r.indexes, r.ids, r.lows, r.highs).Query(func(rows pgx.Rows) error {
			return scanInto(rows, f.events, scanExecutionEvent)
		})
	}
	if r := n.attempts; len(r.ids) > 0 {
		b.Queue(attemptsByRange, r.indexes, r.ids, r.lows, r.highs).Query(func(rows pgx.Rows) error {
			return scanInto(rows, f.attempts, scanAttempt)
		})
	}
	for _, t := range factTables {
		if names := n.facts[t.eventType]; names != nil {
			b.Queue(factsByName(t.table, t.id), names.indexes, names.ids, names.names, names.versions).Query(f.scanWords)
		}
	}
}

var (
	errNoFact      = errors.New("the fact is not stored")
	errNotAllFacts = errors.New("the facts are not all stored")
)

// data makes the data of a row about an execution.
func (f *executionFacts) data(i int, r row) (jsontext.Value, error) {
	switch r.eventType {
	case executionv1.TypeOpened:
		return executionv1.Marshal(f.opened[r.streamID])
	case executionv1.TypeEventsRecorded:
		if p, err := parsePayload[rangePayload](r); err != nil || len(f.events[i]) != p.LastPosition-p.FirstPosition+1 {
			return nil, errNotAllFacts
		}
		return executionv1.Marshal(executionv1.EventsRecorded{ExecutionID: r.streamID, Events: f.events[i]})
	case executionv1.TypeCallbacksRecorded:
		if p, err := parsePayload[rangePayload](r); err != nil || len(f.attempts[i]) != p.LastPosition-p.FirstPosition+1 {
			return nil, errNotAllFacts
		}
		return executionv1.Marshal(executionv1.CallbacksRecorded{ExecutionID: r.streamID, Attempts: f.attempts[i]})
	default:
		return f.factData(i, r)
	}
}

// factData makes the data of a row about a task, an approval or a grant, without it where a
// later row of the stream has what replaced it.
func (f *executionFacts) factData(i int, r row) (jsontext.Value, error) {
	w, ok := f.words[i]
	if !ok || w.version < r.version {
		return nil, errNoFact
	}
	w.id = r.factID()
	replaced := w.version > r.version
	switch r.eventType {
	case executionv1.TypeTaskRecorded:
		m := executionv1.TaskRecorded{ExecutionID: r.streamID}
		if !replaced {
			task := asTask(w)
			m.Task = &task
		}
		return executionv1.Marshal(m)
	case executionv1.TypeApprovalRecorded:
		m := executionv1.ApprovalRecorded{ExecutionID: r.streamID}
		if !replaced {
			approval := asApproval(w)
			m.Approval = &approval
		}
		return executionv1.Marshal(m)
	default:
		m := executionv1.GrantRecorded{ExecutionID: r.streamID}
		if !replaced {
			grant := asGrant(w)
			m.Grant = &grant
		}
		return executionv1.Marshal(m)
	}
}

func (w word) value() jsontext.Value {
	if w.facts == nil {
		return nil
	}
	return jsontext.Value(*w.facts)
}

func asTask(w word) executionv1.Task {
	return executionv1.Task{TaskID: w.id, Version: w.version, Facts: w.value(), RecordedAt: w.at}
}

func asApproval(w word) executionv1.Approval {
	return executionv1.Approval{ApprovalID: w.id, Version: w.version, Facts: w.value(), RecordedAt: w.at}
}

func asGrant(w word) executionv1.Grant {
	return executionv1.Grant{GrantID: w.id, Version: w.version, Facts: w.value(), RecordedAt: w.at}
}

func (f *executionFacts) scanOpened(rows pgx.Rows) error {
	for rows.Next() {
		var e executionv1.Execution
		if err := rows.Scan(executionDest(&e)...); err != nil {
			return fmt.Errorf("read an execution: %w", err)
		}
		e.CreatedAt = e.CreatedAt.UTC()
		f.opened[e.ExecutionID] = e
	}
	return rows.Err()
}

func executionDest(e *executionv1.Execution) []any {
	return []any{
		&e.ExecutionID, &e.ClientAppID, &e.SwarmID, &e.ManagerDeploymentID, &e.DeploymentID, &e.CorrelationID, &e.RunID,
		&e.UserID, &e.ChannelID, &e.CreatedAt,
	}
}

// scanInto reads what belongs to rows, behind the row's index.
func scanInto[T any](rows pgx.Rows, into map[int][]T, scan func(row pgx.Row, before ...any) (T, error)) error {
	for rows.Next() {
		var n int
		v, err := scan(rows, &n)
		if err != nil {
			return err
		}
		into[n] = append(into[n], v)
	}
	return rows.Err()
}

// scanExecutionEvent reads an event behind other columns.
func scanExecutionEvent(row pgx.Row, before ...any) (executionv1.Event, error) {
	var e executionv1.Event
	var payload string
	dest := append(before, &e.Position, &e.EventID, &e.EventType, &e.OccurredAt, &e.TaskID, &e.AgentInstanceID,
		&e.AgentRole, &e.UserID, &e.ChannelID, &payload, &e.DroppedFields, &e.DroppedCount, &e.RecordedAt)
	if err := row.Scan(dest...); err != nil {
		return e, fmt.Errorf("read an event of an execution: %w", err)
	}
	e.Payload, e.RecordedAt = jsontext.Value(payload), e.RecordedAt.UTC()
	if len(e.DroppedFields) == 0 {
		e.DroppedFields = nil
	}
	return e, nil
}

// scanAttempt reads a callback attempt behind other columns.
func scanAttempt(row pgx.Row, before ...any) (executionv1.CallbackAttempt, error) {
	var a executionv1.CallbackAttempt
	var facts string
	if err := row.Scan(append(before, &a.Position, &a.AttemptID, &facts, &a.RecordedAt)...); err != nil {
		return a, fmt.Errorf("read a callback attempt: %w", err)
	}
	a.Facts, a.RecordedAt = jsontext.Value(facts), a.RecordedAt.UTC()
	return a, nil
}

func (f *executionFacts) scanWords(rows pgx.Rows) error {
	for rows.Next() {
		var n int
		var w word
		if err := rows.Scan(&n, &w.version, &w.facts, &w.at); err != nil {
			return fmt.Errorf("read a fact of an execution: %w", err)
		}
		w.at = w.at.UTC()
		f.words[n] = w
	}
	return rows.Err()
}
