package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// backoff bounds the pauses between attempts.
type backoff struct{ shortest, longest time.Duration }

// pause is how long to wait after the n-th failure in a row, from 0: doubled each time,
// half of it random, and at least what the hub asked for.
func (b backoff) pause(n int, err error) time.Duration {
	d := max(b.shortest, 1)
	for ; n > 0 && d < b.longest; n-- {
		d *= 2
	}
	d = min(d, max(b.longest, 1))
	d = d/2 + rand.N(d/2+1) //nolint:gosec // jitter
	var u *unavailableError
	if errors.As(err, &u) {
		d = max(d, u.retryAfter)
	}
	return d
}

// wait waits, unless the context ends first.
func wait(ctx context.Context, d time.Duration) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// retry calls try until it returns nil or an error that waiting does not mend, or until
// the context ends; the error then is both the context's and the last attempt's.
func (h *Hub) retry(ctx context.Context, try func() error) error {
	var last error
	for n := 0; ; n++ {
		err := try()
		if !errors.Is(err, ErrUnavailable) {
			return withLast(ctx, err, last)
		}
		last = err
		if ended := wait(ctx, h.pauses.pause(n, err)); ended != nil {
			return fmt.Errorf("%w: %w", ended, err)
		}
	}
}

// withLast is err, with the failure before it when err only says that the context ended.
func withLast(ctx context.Context, err, last error) error {
	if last == nil || ctx.Err() == nil || !errors.Is(err, ctx.Err()) {
		return err
	}
	return fmt.Errorf("%w: %w", err, last)
}
