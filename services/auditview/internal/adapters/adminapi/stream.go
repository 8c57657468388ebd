package adminapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"verbatim.internal/pkg/contracts/httpapi"
	"verbatim.internal/pkg/domain/trace"
)

// unboundKey has a request's context without the bound on its time.
const unboundKey = "unbound"

// errStalled ends a stream that makes no progress.
var errStalled = errors.New("the stream made no progress in time")

// watch bounds the time between two steps of a stream instead of the time of the whole.
type watch struct {
	timer   *time.Timer
	cancel  context.CancelCauseFunc
	writer  *http.ResponseController
	timeout time.Duration
	now     func() time.Time
}

// watch returns a context that ends with the request, and with a step that takes longer
// than one request may. The server's own bounds are for whole answers and end here.
func (a *api) watch(c *gin.Context) (context.Context, *watch) {
	request, _ := c.MustGet(unboundKey).(context.Context)
	ctx, cancel := context.WithCancelCause(request)
	w := &watch{
		timer:  time.AfterFunc(a.RequestTimeout, func() { cancel(errStalled) }),
		cancel: cancel, writer: http.NewResponseController(c.Writer), timeout: a.RequestTimeout, now: a.Now,
	}
	// The request has been read. Its deadline would end the wait for a client that leaves,
	// and with it the context.
	_ = w.writer.SetReadDeadline(time.Time{})
	return ctx, w
}

// step begins the next step: the write of a page, then the reading of the next.
func (w *watch) step() error {
	w.timer.Reset(w.timeout)
	return w.writer.SetWriteDeadline(w.now().Add(w.timeout))
}

func (w *watch) end() {
	w.timer.Stop()
	w.cancel(nil)
}

// stream writes all records of an execution, one a line, in pages. The time of the whole
// is not bounded, as long as it makes progress. An answer that cannot be ended is cut off,
// so that nobody takes a part for the whole.
func (a *api) stream(c *gin.Context) {
	query, ok := numbers(c, "cursor")
	if !ok {
		return
	}
	ref, ok := a.executionRef(c)
	if !ok {
		return
	}
	select {
	case a.streams <- struct{}{}:
		defer func() { <-a.streams }()
	default:
		c.Header("Retry-After", "1")
		fail(c, http.StatusServiceUnavailable, codeUnavailable, "too many traces are streamed at the moment")
		return
	}
	ctx, watch := a.watch(c)
	defer watch.end()
	const kind = "records"
	begin := func(tag string) bool {
		known := isKnown(c, kind)(tag)
		return !answerTag(c, kind, tag, known)
	}
	var lines []byte
	err := a.Reader.AuditStream(ctx, ref, query[0], begin, func(records []trace.Record) error {
		lines = lines[:0]
		for _, r := range records {
			lines = append(trace.AppendJSON(lines, r), '\n')
		}
		if err := watch.step(); err != nil {
			return err
		}
		c.Header("Content-Type", httpapi.ContentTypeAuditTrace)
		c.Status(http.StatusOK)
		if _, err := c.Writer.Write(lines); err != nil {
			return err
		}
		return watch.writer.Flush()
	})
	switch {
	case err == nil:
	case c.Writer.Written():
		a.log(c, slog.LevelWarn, "a stream was cut off", errors.Join(context.Cause(ctx), err))
		panic(http.ErrAbortHandler)
	default:
		c.Writer.Header().Del(headerETag)
		a.failWith(c, err)
	}
}
