package lineage

import (
	"math"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"verbatim.internal/pkg/contracts/httpapi"
	"verbatim.internal/pkg/domain/trace"
)

// Event is a stored event.
type Event struct {
	Position        int64 // from 1 up, each once
	Type            string
	OccurredAt      string
	TaskID          *string
	AgentInstanceID *string
	Payload         string // a JSON object of scalars
}

const (
	handoffPrefix   = "handoff."
	typeRequested   = "handoff.requested"
	typeRetried     = "task.retried"
	nameAttempt     = "attempt"
	nameHandoffID   = "handoff_id"
	nameFromAgent   = "from_agent"
	nameToAgent     = "to_agent"
	nameTargetRole  = "target_role"
	maxExactInteger = 1<<53 - 1
)

func (e Event) moment() httpapi.TaskMoment {
	return httpapi.TaskMoment{Position: e.Position, OccurredAt: e.OccurredAt, AgentInstanceID: e.AgentInstanceID}
}

// payload is what is said of an event; what is no object says nothing.
type payload map[string]any

func (e Event) read() payload {
	var p payload
	if json.Unmarshal([]byte(e.Payload), &p) != nil {
		return nil
	}
	return p
}

func (p payload) text(name string) *string {
	s, _ := p[name].(string)
	return known(s)
}

func (p payload) integer(name string) *int64 {
	f, ok := p[name].(float64)
	if !ok || f != math.Trunc(f) || math.Abs(f) > maxExactInteger {
		return nil
	}
	n := int64(f)
	return &n
}

// handoffs puts the events of each hand-over together. An event belongs to the hand-over
// whose id it names; one without an id to the oldest of its task that is still open.
func handoffs(events []Event) []httpapi.TaskHandoff {
	all := ledger{list: []httpapi.TaskHandoff{}, byID: make(map[string]int), open: make(map[string][]int)}
	for _, e := range events {
		if strings.HasPrefix(e.Type, handoffPrefix) {
			all.record(e)
		}
	}
	return all.list
}

type ledger struct {
	list []httpapi.TaskHandoff
	byID map[string]int   // the latest hand-over of an id
	open map[string][]int // of a task, the oldest first; some may have been closed
}

func (l *ledger) record(e Event) {
	p := e.read()
	id := p.text(nameHandoffID)
	at := -1
	if e.Type != typeRequested {
		at = l.find(id, e.TaskID)
	} else if id != nil { // unless it is the first word of a hand-over that is known by its id
		if i, known := l.byID[*id]; known && l.list[i].Requested == nil {
			at = i
		}
	}
	if at < 0 {
		at = l.begin(id, e.TaskID)
	}
	h := &l.list[at]
	fill(&h.HandoffID, id)
	fill(&h.TaskID, e.TaskID)
	fill(&h.FromAgent, p.text(nameFromAgent))
	fill(&h.ToAgent, p.text(nameToAgent))
	fill(&h.TargetRole, p.text(nameTargetRole))
	moment := e.moment()
	if e.Type == typeRequested {
		h.Requested = &moment
		if h.Latest != nil {
			return
		}
	} else {
		h.Latest = &moment
	}
	h.Status = e.Type[strings.LastIndexByte(e.Type, '.')+1:]
	h.Result = trace.ResultOf(e.Type)
}

// find returns the hand-over that an event after the request is about, or -1.
func (l *ledger) find(id, task *string) int {
	if id != nil {
		if at, known := l.byID[*id]; known {
			return at
		}
		return -1
	}
	if task == nil {
		return -1
	}
	open := l.open[*task]
	for len(open) > 0 && l.list[open[0]].Result != trace.Info {
		open = open[1:]
	}
	l.open[*task] = open
	if len(open) == 0 {
		return -1
	}
	return open[0]
}

func (l *ledger) begin(id, task *string) int {
	at := len(l.list)
	l.list = append(l.list, httpapi.TaskHandoff{})
	if id != nil {
		l.byID[*id] = at
	}
	if task != nil {
		l.open[*task] = append(l.open[*task], at)
	}
	return at
}

// fill keeps the first word.
func fill(into **string, s *string) {
	if *into == nil {
		*into = s
	}
}

// retries lists the tasks that began again, in the order of tasks, then those that only
// events know, in theirs.
func retries(tasks []Task, events []Event) []httpapi.TaskRetries {
	byTask := make(map[string][]httpapi.TaskRetry)
	var ids []string
	for _, e := range events {
		if e.Type != typeRetried || e.TaskID == nil {
			continue
		}
		if byTask[*e.TaskID] == nil {
			ids = append(ids, *e.TaskID)
		}
		byTask[*e.TaskID] = append(byTask[*e.TaskID], httpapi.TaskRetry{TaskMoment: e.moment(), Attempt: e.read().integer(nameAttempt)})
	}
	list := []httpapi.TaskRetries{}
	for _, t := range tasks {
		told := byTask[t.ID]
		delete(byTask, t.ID)
		if told != nil || t.Facts.RetryCount != nil && *t.Facts.RetryCount > 0 {
			list = append(list, httpapi.TaskRetries{TaskID: t.ID, RetryCount: t.Facts.RetryCount, Events: told})
		}
	}
	for _, id := range slices.Sorted(slices.Values(ids)) {
		if told := byTask[id]; told != nil {
			list = append(list, httpapi.TaskRetries{TaskID: id, Events: told})
		}
	}
	return list
}
