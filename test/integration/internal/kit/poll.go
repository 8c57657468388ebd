package kit

import (
	"context"
	"testing"
	"time"
)

// pollEvery is the pause between two looks at a condition.
const pollEvery = 10 * time.Millisecond

// Until looks at the condition until it returns nil, and returns its last error
// when the time is up or the context ends.
func Until(ctx context.Context, limit time.Duration, condition func() error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		err := condition()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-ticker.C:
		}
	}
}

// Eventually fails the test when the condition is not met in time.
func Eventually(t *testing.T, limit time.Duration, condition func() error) {
	t.Helper()
	if err := Until(t.Context(), limit, condition); err != nil {
		t.Fatalf("not within %v: %v", limit, err)
	}
}
