package client

import (
	"context"
	"errors"
	"time"
)

// slowPause is how long Run leaves an archive alone that waiting alone does not mend: an
// unsupported hub, a session to authorize again.
const slowPause = time.Minute

// Run syncs the spool's archives until ctx ends, and returns its error: those with
// unacknowledged events or unconfirmed members at once, and whatever is appended later as
// it comes. report is told of each archive how an attempt ended, nil when everything is
// acknowledged; it may be nil, and is called from Run's goroutine. A refused archive is
// reported once, until Resume.
func (s *Spool) Run(ctx context.Context, report func(Status, error)) error {
	if report == nil {
		report = func(Status, error) {}
	}
	w := worker{spool: s, report: report, waiting: map[string]postponed{}, refused: map[string]bool{}}
	for {
		pause, err := w.pass(ctx)
		if err != nil {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-s.wake:
		case <-timer.C:
		}
		timer.Stop()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// worker is what Run remembers.
type worker struct {
	spool  *Spool
	report func(Status, error)
	// failures counts attempts in a row that the hub was not available for; until hubBefore
	// it is left alone.
	failures  int
	hubBefore time.Time
	// waiting holds the archives that are tried again later.
	waiting map[string]postponed
	// refused are the archives whose refusal is reported.
	refused map[string]bool
}

// postponed is an archive that is tried again later.
type postponed struct {
	failures int
	until    time.Time
}

// pass tries the archives that are due, and returns how long nothing else is. When the hub
// is not available the pass ends, and the next one begins with another archive: neither a
// hub that is down nor an archive that fails alone gets more than its share.
func (w *worker) pass(ctx context.Context) (time.Duration, error) {
	if left := w.hubBefore.Sub(w.spool.clock()); left > 0 {
		return left, nil
	}
	all, err := w.spool.Archives()
	if err != nil {
		return 0, err
	}
	pause := slowPause
	for _, st := range all {
		if !w.isPending(st) {
			continue
		}
		if left := w.waiting[st.ID].until.Sub(w.spool.clock()); left > 0 {
			pause = min(pause, left)
			continue
		}
		err := w.try(ctx, st.ID)
		switch {
		case ctx.Err() != nil:
			return 0, ctx.Err()
		case errors.Is(err, ErrClosed):
			return 0, err
		case errors.Is(err, ErrUnavailable):
			return w.postpone(st.ID, err), nil
		case errors.Is(err, ErrUnsupported), errors.Is(err, ErrReauthorize):
			w.waiting[st.ID] = postponed{until: w.spool.clock().Add(slowPause)}
		default:
			delete(w.waiting, st.ID)
		}
		w.failures = 0
	}
	return pause, nil
}

// postpone notes that the hub was not available for an archive, and returns the pause.
func (w *worker) postpone(id string, err error) time.Duration {
	now, pauses := w.spool.clock(), w.spool.hub.pauses
	own := w.waiting[id]
	w.waiting[id] = postponed{own.failures + 1, now.Add(pauses.pause(own.failures, err))}
	pause := pauses.pause(w.failures, err)
	w.failures++
	w.hubBefore = now.Add(pause)
	return pause
}

// isPending reports whether there is something to do; a refusal is reported once.
func (w *worker) isPending(st Status) bool {
	if st.State == Refused {
		if !w.refused[st.ID] {
			w.refused[st.ID] = true
			w.report(st, st.Refusal)
		}
		return false
	}
	delete(w.refused, st.ID)
	return st.State != Ready || st.Acknowledged < st.LastSequence
}

func (w *worker) try(ctx context.Context, id string) error {
	a, err := w.spool.Archive(id)
	if err != nil {
		return err
	}
	if err := a.sync.acquire(ctx); err != nil {
		return err
	}
	_, err = a.attempt(ctx)
	a.sync.release()
	st, failed := a.Status()
	if failed != nil {
		return failed
	}
	w.refused[id] = st.State == Refused
	w.report(st, err)
	return err
}
