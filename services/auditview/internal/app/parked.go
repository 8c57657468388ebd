package app

import (
	"context"
	"fmt"
	"time"

	"verbatim.internal/pkg/contracts/cloudevent"
	"verbatim.internal/services/auditview/internal/readmodel"
)

// ParkedStream is a stream that waits because a message of it could never be applied.
type ParkedStream struct {
	Stream readmodel.Stream
	// FromVersion and ToVersion are the first and the last parked version.
	FromVersion, ToVersion int64
	// Count is the number of parked messages, Error the reason of the first that has one.
	Count int64
	Error string
	// Since is when the first one was parked.
	Since time.Time
}

// ParkedStore is what the read model knows about parked messages.
type ParkedStore interface {
	ProjectionStore
	// Parked returns the streams with parked messages, in key order.
	Parked(ctx context.Context) ([]ParkedStream, error)
	// CountStreams returns how many streams have at least one applied message.
	CountStreams(ctx context.Context) (int64, error)
	// ParkedEvents returns the parked messages of a stream, oldest first, at most limit,
	// after the given version and part.
	ParkedEvents(ctx context.Context, s readmodel.Stream, afterVersion int64, afterPart, limit int) ([]cloudevent.Event, error)
}

// Replayer tries parked messages again.
type Replayer struct{ store ParkedStore }

// NewReplayer returns a replayer.
func NewReplayer(store ParkedStore) *Replayer { return &Replayer{store} }

// replayPage is how many parked messages are read at a time.
const replayPage = 16

// Replay applies parked messages again, in order, each in a transaction of its own that
// also forgets it, and stops in a stream at the first that still fails, whose reason it
// keeps. An empty match means all streams; else it is a stream's id or kind/id. It
// returns how many messages were replayed and how many are still parked.
//
// It may run beside the service: streams are locked. A crash leaves each message either
// replayed or parked.
func (r *Replayer) Replay(ctx context.Context, match string) (replayed, still int, err error) {
	parked, err := r.store.Parked(ctx)
	if err != nil {
		return 0, 0, err
	}
	for _, p := range parked {
		if match != "" && match != p.Stream.ID && match != p.Stream.String() {
			continue
		}
		n, err := r.replayStream(ctx, p.Stream)
		replayed += n
		if err != nil {
			return replayed, 0, fmt.Errorf("replay %s: %w", p.Stream, err)
		}
	}
	left, err := r.store.Parked(ctx)
	if err != nil {
		return replayed, 0, err
	}
	for _, p := range left {
		if match == "" || match == p.Stream.ID || match == p.Stream.String() {
			still += int(p.Count)
		}
	}
	return replayed, still, nil
}

func (r *Replayer) replayStream(ctx context.Context, s readmodel.Stream) (replayed int, err error) {
	version, part := int64(0), 0
	for {
		events, err := r.store.ParkedEvents(ctx, s, version, part, replayPage)
		if err != nil || len(events) == 0 {
			return replayed, err
		}
		for _, e := range events {
			done, err := r.replayOne(ctx, readmodel.Decode(e))
			if err != nil || !done {
				return replayed, err
			}
			replayed++
			version, part = e.StreamVersion, e.Part()
		}
	}
}

// replayOne reports whether the message is no longer parked.
func (r *Replayer) replayOne(ctx context.Context, m readmodel.Message) (bool, error) {
	plan, err := r.run(ctx, m)
	if reason := permanent(err); reason != nil {
		m.Body, m.Err = nil, reason
		plan, err = r.run(ctx, m)
	}
	if err != nil {
		return false, err
	}
	return plan.Summary.Parked == 0 && plan.Summary.Refused == 0, nil
}

func (r *Replayer) run(ctx context.Context, m readmodel.Message) (plan readmodel.Plan, err error) {
	err = r.store.Project(ctx, []readmodel.Stream{m.Stream}, func(heads map[readmodel.Stream]readmodel.Head) (readmodel.Changes, error) {
		plan = readmodel.MakePlan(heads, []readmodel.Message{m}, true)
		return plan.Changes, nil
	})
	return plan, err
}
