// Package runtrace assembles what administrators see of a run or of a tool job from what
// is stored about it: the events in order, the invocations that they make up, and counts.
//
// It is pure. The same stored events give the same trace on every replica, in whatever
// order and batches they arrived: only their positions count. Nothing is invented: what
// no event says is absent.
package runtrace

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"verbatim.internal/pkg/contracts/httpapi"
)

// Run is what is stored about a run.
type Run struct {
	ClientAppID          string
	RouteKey             string
	ClientConversationID string
	ClientTurnID         string
	CreatedAt            time.Time
	Status               string     // running, completed, failed or cancelled
	Model                *string    // nil where the host did not say
	Runtime              *string    // nil where the host did not say
	CompletedAt          *time.Time // nil while it runs
}

// Event is a stored event of a run.
type Event struct {
	Position      int    // from 1 up, each once
	Event         string // dotted, such as tool.called
	OccurredAt    string // RFC 3339 in UTC with 0 to 9 fractional digits
	JobID         *string
	Metadata      string // a JSON object of scalars
	DroppedFields int
}

// Trace is an assembled trace.
type Trace struct {
	Trace       httpapi.TraceView
	Invocations []httpapi.Invocation // by their first event
	Governance  httpapi.Governance
}

// Names of the events that are derived from the run itself.
const (
	eventOpened = "run.opened"
	runPrefix   = "run."
	running     = "running"
)

// Build assembles the trace of a run from all of its events, in any order. Its first event
// is run.opened; a run that has ended has its end as the last one, whatever a host
// recorded later. It changes nothing that it is given.
func Build(run Run, events []Event) Trace {
	t, list := assemble(events)
	opened := derived(run.CreatedAt, eventOpened, strings.Join([]string{run.ClientAppID, run.RouteKey, "turn " + run.ClientTurnID}, ", "), openedDetail{
		run.ClientAppID, run.RouteKey, run.ClientConversationID, run.ClientTurnID,
	})
	list = append([]httpapi.TraceEventView{opened}, list...)
	if run.CompletedAt != nil && run.Status != running {
		duration := run.CompletedAt.Truncate(time.Millisecond).Sub(run.CreatedAt.Truncate(time.Millisecond))
		t.Trace.Summary.DurationMS = milliseconds(duration)
		detail := endedDetail{run.Status, run.Model, run.Runtime, t.Trace.Summary.DurationMS}
		list = append(list, derived(*run.CompletedAt, runPrefix+run.Status, detail.line(), detail))
	}
	t.show(list)
	return t
}

// BuildJob assembles the trace of one job. Events that are not the job's are passed over.
// There is one invocation, the same as in the trace of the job's run; none without events.
func BuildJob(jobID string, events []Event) Trace {
	t, list := assemble(slices.DeleteFunc(slices.Clone(events), func(e Event) bool {
		return e.JobID == nil || *e.JobID != jobID
	}))
	for _, i := range t.Invocations {
		if i.FinishedAt != nil {
			t.Trace.Summary.DurationMS = i.DurationMS
		}
	}
	t.show(list)
	return t
}

// record is a stored event, read.
type record struct {
	Event
	stage, last string // the first and the last part of its name
	metadata    metadata
}

func read(e Event) record {
	r := record{Event: e, metadata: parse(e.Metadata)}
	r.stage, r.last = parts(e.Event)
	return r
}

func parts(event string) (first, last string) {
	first, _, _ = strings.Cut(event, ".")
	return first, event[strings.LastIndexByte(event, '.')+1:]
}

const (
	stageTool     = "tool"
	stageApproval = "approval"
	eventCalled   = "tool.called"
)

// assemble makes everything that stored events alone decide.
func assemble(events []Event) (t Trace, list []httpapi.TraceEventView) {
	sorted := slices.SortedFunc(slices.Values(events), func(a, b Event) int { return cmp.Compare(a.Position, b.Position) })
	list = make([]httpapi.TraceEventView, 0, len(sorted)+2)
	byJob := make(map[string][]record)
	var jobs []string
	approvals := approvalCounter{}
	for _, e := range sorted {
		r := read(e)
		list = append(list, r.view())
		t.Governance.DroppedFields += e.DroppedFields
		switch {
		case e.JobID == nil && e.Event == eventCalled:
			t.Trace.Summary.ToolInvocations++
		case e.JobID != nil:
			if byJob[*e.JobID] == nil {
				jobs = append(jobs, *e.JobID)
			}
			byJob[*e.JobID] = append(byJob[*e.JobID], r)
		}
		if r.stage == stageApproval {
			approvals.add(r)
			countApproval(&t.Governance, r)
		}
	}
	t.Invocations = make([]httpapi.Invocation, 0, len(jobs))
	for _, job := range jobs {
		t.Invocations = append(t.Invocations, invocation(job, byJob[job]))
	}
	t.Trace.Summary.ToolInvocations += len(jobs)
	t.Trace.Summary.Approvals = approvals.count()
	return t, list
}

// show makes a list the trace's, and counts what it shows.
func (t *Trace) show(list []httpapi.TraceEventView) {
	t.Trace.Events = list
	t.Trace.Summary.EventCount = len(list)
	for _, e := range list {
		switch e.Severity {
		case httpapi.SeverityWarning:
			t.Trace.Summary.WarningCount++
		case httpapi.SeverityError:
			t.Trace.Summary.ErrorCount++
		}
	}
}

func (r record) view() httpapi.TraceEventView {
	return httpapi.TraceEventView{
		TS: r.OccurredAt, Event: r.Event.Event, Stage: r.stage, Severity: severity(r.last, r.metadata), Title: title(r.Event.Event),
		Summary: r.metadata.line(), Detail: r.metadata.raw, Source: httpapi.SourceHost, ToolJobID: r.JobID,
	}
}

type openedDetail struct {
	ClientAppID          string `json:"client_app_id"`
	RouteKey             string `json:"route_key"`
	ClientConversationID string `json:"client_conversation_id"`
	ClientTurnID         string `json:"client_turn_id"`
}

type endedDetail struct {
	Status     string   `json:"status"`
	Model      *string  `json:"model,omitzero"`
	Runtime    *string  `json:"runtime,omitzero"`
	DurationMS *float64 `json:"duration_ms,omitzero"`
}

func (d endedDetail) line() string {
	var words []string
	if d.Model != nil {
		words = append(words, *d.Model)
	}
	if d.Runtime != nil {
		words = append(words, *d.Runtime)
	}
	if d.DurationMS != nil {
		words = append(words, decimal(*d.DurationMS)+" ms")
	}
	return strings.Join(words, ", ")
}

func derived(at time.Time, event, summary string, detail any) httpapi.TraceEventView {
	stage, last := parts(event)
	body, err := json.Marshal(detail, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		panic("runtrace: a detail that is not JSON") // a programmer's error: strings and numbers
	}
	return httpapi.TraceEventView{
		TS: httpapi.FormatTime(at), Event: event, Stage: stage, Severity: severity(last, metadata{}), Title: title(event),
		Summary: summary, Detail: body, Source: httpapi.SourceIngest,
	}
}

// title says an event's name as a person would: "Tool called".
func title(event string) string {
	words := strings.NewReplacer(".", " ", "_", " ").Replace(event)
	if words == "" {
		return ""
	}
	return strings.ToUpper(words[:1]) + words[1:]
}

// Words of a name's last part, of a status and of a decision.
var (
	errorWords   = []string{"failed", "error", "timeout"}
	warningWords = []string{"rejected", "denied", "blocked", "cancelled", "retried"}
)

// severity tells how bad an event is: an error when it says that something failed, a
// warning when something was refused, given up or tried again.
func severity(last string, m metadata) string {
	says := func(words []string) bool {
		return slices.ContainsFunc([]string{last, m.word("status"), m.word("decision")}, func(word string) bool {
			return slices.Contains(words, word)
		})
	}
	ok, told := m.boolean("ok")
	attempt, _ := m.number("attempt")
	retries, _ := m.number("retry_count")
	switch {
	case says(errorWords) || told && !ok:
		return httpapi.SeverityError
	case says(warningWords) || attempt > 1 || retries > 0:
		return httpapi.SeverityWarning
	default:
		return httpapi.SeverityInfo
	}
}

// milliseconds returns a duration; nil for one that would have to be negative.
func milliseconds(d time.Duration) *float64 {
	if d < 0 {
		return nil
	}
	ms := float64(d.Milliseconds())
	return &ms
}
