package main

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"verbatim.internal/pkg/domain/execution"
)

const executionsPath = "/runtime-api/v1/runs/"

// executionPayload is what the events say beside their names: canonical, nothing is dropped.
const executionPayload = `{"attempt":1,"duration_ms":1250,"from_status":"queued","status":"running","tool_count":3}`

// executionBatch is the events of one request, a column an array.
type executionBatch struct {
	positions []int32
	ids       []string
	types     []string
	times     []string
	tasks     []string
	instances []string
	payloads  []string
	dropped   []string
	counts    []int32
	hashes    [][]byte
}

var executionTypes = [...]string{"task.created", "task.running", "task.heartbeat", "task.completed", "handoff.completed"}

func newExecutionBatch(size int) *executionBatch {
	b := &executionBatch{
		positions: make([]int32, size), ids: make([]string, size), types: make([]string, size), times: make([]string, size),
		tasks: make([]string, size), instances: make([]string, size), payloads: make([]string, size),
		dropped: make([]string, size), counts: make([]int32, size), hashes: make([][]byte, size),
	}
	hash := make([]byte, 32)
	for i := range size {
		b.types[i], b.instances[i] = executionTypes[i%len(executionTypes)], "agent-"+strconv.Itoa(i%50)
		b.payloads[i], b.hashes[i] = executionPayload, hash
	}
	return b
}

func (b *executionBatch) size() int { return len(b.ids) }

// fill makes the events that follow the position last.
func (b *executionBatch) fill(last int) {
	begun := time.Date(2026, 6, 8, 9, 0, 0, 0, time.UTC)
	for i := range b.ids {
		position := last + i + 1
		b.positions[i], b.ids[i] = int32(position), "event-"+strconv.Itoa(position)
		b.tasks[i] = "task-" + strconv.Itoa(position%1000)
		b.times[i] = begun.Add(time.Duration(position) * time.Millisecond).Format("2006-01-02T15:04:05.000000Z")
	}
}

// appendJSON appends the body of the request.
func (b *executionBatch) appendJSON(dst []byte) []byte {
	dst = append(dst, `{"events":[`...)
	for i := range b.ids {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(dst, `{"event_id":"`...), b.ids[i]...)
		dst = append(append(dst, `","event_type":"`...), b.types[i]...)
		dst = append(append(dst, `","occurred_at":"`...), b.times[i]...)
		dst = append(append(dst, `","task_id":"`...), b.tasks[i]...)
		dst = append(append(dst, `","agent_instance_id":"`...), b.instances[i]...)
		dst = append(append(dst, `","payload":`...), b.payloads[i]...)
		dst = append(dst, '}')
	}
	return append(dst, `]}`...)
}

// fits tells whether an execution with so many events has room for one more batch.
func (b *executionBatch) fits(last int) bool { return last+b.size() <= execution.MaxEvents }

// orchestrator records events of executions of its own over HTTP.
type orchestrator struct {
	url    string
	conn   *keptAlive
	batch  *executionBatch
	stored *atomic.Int64

	last int // of the execution before the batch
	path string
	body []byte
}

// newOrchestrators returns clients of an ingest, each with a connection and executions of its own.
func newOrchestrators(url string, clients, size int, stored *atomic.Int64) []writer {
	writers := make([]writer, clients)
	for i := range writers {
		writers[i] = &orchestrator{url: url, batch: newExecutionBatch(size), stored: stored}
	}
	return writers
}

func (w *orchestrator) connect(ctx context.Context) error {
	var err error
	w.conn, err = dial(ctx, w.url, clientToken)
	return err
}

func (w *orchestrator) disconnect() { w.conn.close() }

func (w *orchestrator) prepare(context.Context) error {
	if w.path == "" || !w.batch.fits(w.last) {
		run := executionsPath + uuid.NewString()
		if err := w.conn.exchange(http.MethodPut, run, []byte(`{"deployment_id":"deployment-1","correlation_id":"correlation-1"}`)); err != nil {
			return fmt.Errorf("open an execution: %w", err)
		}
		w.path, w.last = run+"/events", 0
	}
	w.batch.fill(w.last)
	w.body = w.batch.appendJSON(w.body[:0])
	return nil
}

func (w *orchestrator) send(context.Context) error {
	var ack struct {
		Accepted     int `json:"accepted"`
		LastPosition int `json:"last_position"`
	}
	if err := w.conn.do(http.MethodPost, w.path, w.body, &ack); err != nil {
		return fmt.Errorf("record events: %w", err)
	}
	w.last += w.batch.size()
	if ack.Accepted != w.batch.size() || ack.LastPosition != w.last {
		return fmt.Errorf("record events: %d acknowledged up to %d instead of %d up to %d", ack.Accepted, ack.LastPosition, w.batch.size(), w.last)
	}
	w.stored.Add(int64(w.batch.size()))
	return nil
}
