package app

import (
	"context"
	"time"

	"verbatim.internal/services/auditview/internal/runtrace"
)

// Bounds of pages of threads and runs. A limit of zero means the default.
const (
	DefaultThreads    = 50
	MaxThreads        = 100
	DefaultThreadRuns = 50
	MaxThreadRuns     = 100
)

// Thread is the conversation thread of a (session, route, client conversation), as its
// runs tell of it. Should they disagree about the owner, it is the first run's.
type Thread struct {
	ThreadID             int64 // from 1 up
	SessionID            string
	ClientAppID          string
	RouteKey             string
	ClientConversationID string
	RunCount             int64
	FirstRunAt           time.Time
	LastRunAt            time.Time
}

// Run is an authorized run and the archive that it is linked to, if any. It holds no text
// of the conversation and nothing about whose it is but the session.
type Run struct {
	RunID                string
	SessionID            string
	ClientAppID          string
	RouteKey             string
	ThreadID             int64 // 0 for a run without a thread
	ClientConversationID string
	ClientTurnID         string
	CreatedAt            time.Time
	Status               string // running, completed, failed or cancelled
	// Model, Runtime, Usage (JSON, byte for byte) and CompletedAt are nil where nothing was
	// said and until the run has ended.
	Model          *string
	Runtime        *string
	Usage          *string
	CompletedAt    *time.Time
	ConversationID *string // nil without a verified link
}

// ThreadPage is a page of threads, the greatest thread id first.
type ThreadPage struct {
	Threads []Thread
	HasMore bool
	// NextBefore is the thread id below which the next page begins, when HasMore.
	NextBefore int64
}

// ThreadDetailPage is a thread with a page of its runs, all as of one moment.
type ThreadDetailPage struct {
	Thread  Thread
	Runs    []Run // by created_at and run id, ascending
	HasMore bool
	// NextOffset is where the next page begins, when HasMore.
	NextOffset int64
}

// RunTrace is a run and what happened in it, as of one moment.
type RunTrace struct {
	Run   Run
	Trace runtrace.Trace
	// Executions belong to the run as they say, at most MaxRunExecutions, the first ones.
	Executions []RunExecution
}

// MaxRunExecutions bounds the executions that a run is shown with.
const MaxRunExecutions = 100

// RunExecution is an execution that says that it belongs to a run.
type RunExecution struct {
	ClientAppID string
	SwarmID     string
	Result      string
}

// JobTrace is a tool job with the run that it belongs to, as of one moment.
type JobTrace struct {
	JobID string
	Run   Run
	// Trace has one invocation: the job's.
	Trace runtrace.Trace
}

// RunStore is the part of ReadStore about threads and runs. A link counts only when
// archive and member agree with the run in everything.
type RunStore interface {
	// Threads returns at most limit threads whose ids are below before, the greatest first.
	Threads(ctx context.Context, limit int, before int64) ([]Thread, error)
	// Thread reads a thread and at most limit of its runs after the first offset ones, in
	// one snapshot.
	Thread(ctx context.Context, threadID int64, limit int, offset int64) (Thread, []Run, error)
	// Run reads a run of a thread, its events and at most MaxRunExecutions of its client's
	// executions that belong to it in one snapshot. One whose link does not hold is not
	// found.
	Run(ctx context.Context, threadID int64, runID string) (Run, []runtrace.Event, []RunExecution, error)
	// Job reads the run that a job belongs to and the job's events, at least one, in one
	// snapshot. A job that several runs claim is not found.
	Job(ctx context.Context, jobID string) (Run, []runtrace.Event, error)
}

// maxThreadID is the greatest thread id that there is.
const maxThreadID = 1<<53 - 1

// Threads returns a page of the threads whose ids are below before; 0 means all. Going on
// with NextBefore repeats none, and skips only threads that came in between: ingest numbers
// new ones upwards, but an imported one has any number, and streams come in no order.
func (r *Reader) Threads(ctx context.Context, limit, before int64) (ThreadPage, error) {
	n := clamp(limit, DefaultThreads, MaxThreads)
	if before == 0 {
		before = maxThreadID + 1
	}
	threads, err := r.store.Threads(ctx, n+1, before)
	if err != nil {
		return ThreadPage{}, err
	}
	page := ThreadPage{Threads: threads}
	if len(threads) > n {
		page.Threads, page.HasMore = threads[:n], true
		page.NextBefore = threads[n-1].ThreadID
	}
	return page, nil
}

// Thread returns a thread and a page of its runs. New runs come last; one that comes late,
// after runs that were opened later, moves those, so that going on with NextOffset may
// repeat a run, and skips none but the late one itself.
func (r *Reader) Thread(ctx context.Context, threadID, limit, offset int64) (ThreadDetailPage, error) {
	n := clamp(limit, DefaultThreadRuns, MaxThreadRuns)
	thread, runs, err := r.store.Thread(ctx, threadID, n+1, offset)
	if err != nil {
		return ThreadDetailPage{}, err
	}
	page := ThreadDetailPage{Thread: thread, Runs: runs}
	if len(runs) > n {
		page.Runs, page.HasMore = runs[:n], true
		page.NextOffset = offset + int64(n)
	}
	return page, nil
}

// RunTrace returns a run of a thread and what happened in it.
func (r *Reader) RunTrace(ctx context.Context, threadID int64, runID string) (RunTrace, error) {
	run, events, executions, err := r.store.Run(ctx, threadID, runID)
	if err != nil {
		return RunTrace{}, err
	}
	trace := runtrace.Build(runtrace.Run{
		ClientAppID: run.ClientAppID, RouteKey: run.RouteKey,
		ClientConversationID: run.ClientConversationID, ClientTurnID: run.ClientTurnID,
		CreatedAt: run.CreatedAt, Status: run.Status, Model: run.Model, Runtime: run.Runtime, CompletedAt: run.CompletedAt,
	}, events)
	return RunTrace{Run: run, Trace: trace, Executions: executions}, nil
}

// JobTrace returns a tool job and what happened in it.
func (r *Reader) JobTrace(ctx context.Context, jobID string) (JobTrace, error) {
	run, events, err := r.store.Job(ctx, jobID)
	if err != nil {
		return JobTrace{}, err
	}
	return JobTrace{JobID: jobID, Run: run, Trace: runtrace.BuildJob(jobID, events)}, nil
}
