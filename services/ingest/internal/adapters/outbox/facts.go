package outbox

import (
	"context"
	"errors"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"verbatim.internal/pkg/contracts/archivev1"
	"verbatim.internal/pkg/contracts/executionv1"
	"verbatim.internal/pkg/contracts/registryv1"
	"verbatim.internal/pkg/contracts/runv1"
	"verbatim.internal/pkg/domain/identity"
)

// facts are what the rows of one batch name.
type facts struct {
	headers map[string]archivev1.Header
	members map[string][]archivev1.Member
	events  map[int][]archivev1.Event // by the row's index

	runs        map[string]runv1.Run
	completions map[string]runv1.Completed
	trace       map[int][]runv1.TraceEvent // by the row's index

	changes map[string]registryv1.Change

	executions executionFacts
}

func newFacts() *facts {
	return &facts{
		headers: map[string]archivev1.Header{}, members: map[string][]archivev1.Member{}, events: map[int][]archivev1.Event{},
		runs: map[string]runv1.Run{}, completions: map[string]runv1.Completed{}, trace: map[int][]runv1.TraceEvent{},
		changes:    map[string]registryv1.Change{},
		executions: newExecutionFacts(),
	}
}

// names are what is to be read.
type names struct {
	archives   archiveNames
	runs       runNames
	changes    []string
	executions executionNames
}

func namesOf(rows []row) (n names) {
	for i, r := range rows {
		if _, ok := identity.ParseUUID(r.streamID); !ok {
			continue // nothing of ours: it is sent bare
		}
		switch r.eventType {
		case archivev1.TypeCreated, archivev1.TypeMemberConfirmed, archivev1.TypeEventsAppended:
			n.archives.add(i, r)
		case runv1.TypeRecorded, runv1.TypeCompleted, runv1.TypeTraceRecorded:
			n.runs.add(i, r)
		case registryv1.TypeRecorded:
			n.changes = append(n.changes, r.streamID)
		case executionv1.TypeOpened, executionv1.TypeEventsRecorded, executionv1.TypeTaskRecorded, executionv1.TypeApprovalRecorded,
			executionv1.TypeGrantRecorded, executionv1.TypeCallbacksRecorded:
			n.executions.add(i, r)
		}
	}
	return n
}

// facts reads what the rows name, in one round trip.
func (s *store) facts(ctx context.Context, rows []row) (*facts, error) {
	n := namesOf(rows)
	f, err := s.read(ctx, n)
	// Only a row that somebody put there by hand names what the migrations 059, 061 and 062
	// bring before they are there. It is sent bare, and stops nobody else.
	if isMissing(err) && n.executions.any() {
		n.executions = executionNames{}
		f, err = s.read(ctx, n)
	}
	if isMissing(err) && n.needMigrations() {
		n.changes, n.runs = nil, runNames{ids: n.runs.ids}
		f, err = s.read(ctx, n)
	}
	return f, err
}

// needMigrations reports whether something is named that migrations 059 and 061 bring.
func (n names) needMigrations() bool {
	return len(n.changes) > 0 || len(n.runs.completed) > 0 || len(n.runs.ranges) > 0
}

func (s *store) read(ctx context.Context, n names) (*facts, error) {
	f, b := newFacts(), &pgx.Batch{}
	n.archives.queue(b, f)
	n.runs.queue(b, f)
	if len(n.changes) > 0 {
		b.Queue(changesByID, n.changes).Query(f.scanChanges)
	}
	n.executions.queue(b, &f.executions)
	if b.Len() == 0 {
		return f, nil
	}
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	return f, s.pool.SendBatch(ctx, b).Close()
}

// isMissing reports whether a statement named a table that does not exist.
func isMissing(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "42P01"
}

// data makes the data of row i; unknown types go out as they are.
func (f *facts) data(i int, r row) (jsontext.Value, error) {
	switch r.eventType {
	case archivev1.TypeCreated, archivev1.TypeMemberConfirmed, archivev1.TypeEventsAppended:
		return f.archiveData(i, r)
	case runv1.TypeRecorded, runv1.TypeCompleted, runv1.TypeTraceRecorded:
		return f.runData(i, r)
	case registryv1.TypeRecorded:
		return f.changeData(r.streamID)
	case executionv1.TypeOpened, executionv1.TypeEventsRecorded, executionv1.TypeTaskRecorded, executionv1.TypeApprovalRecorded,
		executionv1.TypeGrantRecorded, executionv1.TypeCallbacksRecorded:
		return f.executions.data(i, r)
	default:
		return r.bareData(), nil
	}
}
