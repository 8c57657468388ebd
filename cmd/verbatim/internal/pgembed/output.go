package pgembed

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// drainPatience bounds the wait for the last lines of a server that has ended:
// a backend that outlives it for a moment keeps the pipe open.
const drainPatience = time.Second

// output reads the server's messages: it logs them, notices when the server is
// ready, and keeps what a failed start has to say.
type output struct {
	log   *slog.Logger
	ready chan struct{}
	ended chan struct{}
	// stopping makes a matter of routine of what the server says of the clients it cuts off.
	stopping atomic.Bool

	mu       sync.Mutex
	fatal    string // the last FATAL or PANIC message
	last     string
	bindFail bool
}

func newOutput(ctx context.Context, log *slog.Logger) (*output, *os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	o := &output{log: log, ready: make(chan struct{}), ended: make(chan struct{})}
	go o.read(ctx, r)
	return o, w, nil
}

func (o *output) read(ctx context.Context, r io.ReadCloser) {
	defer close(o.ended)
	defer func() { _ = r.Close() }()
	ready := false
	for lines := bufio.NewScanner(r); lines.Scan(); {
		level, message := parse(lines.Text())
		if o.stopping.Load() && !strings.HasPrefix(lines.Text(), "PANIC") {
			level = slog.LevelDebug
		}
		o.log.LogAttrs(ctx, level, "postgres", slog.String("message", message))
		o.keep(level, message)
		if !ready && strings.Contains(message, "database system is ready to accept connections") {
			ready = true
			close(o.ready)
		}
	}
	// A line too long for the scanner ends it; the server must not block on a full pipe.
	_, _ = io.Copy(io.Discard, r)
}

func (o *output) keep(level slog.Level, message string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if message != "" {
		o.last = message
	}
	if level >= slog.LevelWarn {
		o.fatal = message
	}
	if strings.Contains(message, "could not bind") {
		o.bindFail = true
	}
}

// drain waits for the last lines of a server that has ended.
func (o *output) drain() {
	select {
	case <-o.ended:
	case <-time.After(drainPatience):
	}
}

func (o *output) portTaken() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.bindFail
}

// reason is the most telling message so far.
func (o *output) reason() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.fatal != "":
		return o.fatal
	case o.last != "":
		return o.last
	default:
		return "it said nothing"
	}
}

// parse splits "LEVEL:  message". The server's routine is of interest only when
// something is wrong.
func parse(line string) (slog.Level, string) {
	severity, message, ok := strings.Cut(line, ":")
	if !ok {
		return slog.LevelDebug, strings.TrimSpace(line)
	}
	switch severity {
	case "FATAL", "PANIC":
		return slog.LevelWarn, strings.TrimSpace(message)
	case "LOG":
		return slog.LevelDebug, strings.TrimSpace(message)
	default:
		return slog.LevelDebug, strings.TrimSpace(line)
	}
}
