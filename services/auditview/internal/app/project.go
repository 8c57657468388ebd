package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"verbatim.internal/services/auditview/internal/readmodel"
)

// ProjectionStore is where the read model lives.
type ProjectionStore interface {
	// Project runs one transaction: it locks the streams, in the order given, reads their
	// heads, asks plan and makes all changes or, with any error, none. plan may be called
	// again when the transaction is run again. A *PermanentError says that these changes
	// will never be taken. Safe for concurrent use.
	Project(ctx context.Context, streams []readmodel.Stream, plan PlanFunc) error
	// Applied returns how far streams are, and which of them have parked messages. A stream
	// of which nothing ever came is not among them. Safe for concurrent use.
	Applied(ctx context.Context, streams []readmodel.Stream) (map[readmodel.Stream]StreamState, error)
}

// StreamState is how far a stream is.
type StreamState struct {
	// Applied is the version up to which everything is applied; 0 for nothing.
	Applied int64
	// Parked tells that messages wait because one of them can never be applied.
	Parked bool
}

// PlanFunc decides on changes, given the heads of the locked streams.
type PlanFunc func(heads map[readmodel.Stream]readmodel.Head) (readmodel.Changes, error)

// Projector applies batches of messages to the read model (relay.md, "Projection" and
// "Failure"). It keeps no state and is safe for concurrent use; streams that several
// batches share are serialized by their locks.
type Projector struct {
	store    ProjectionStore
	stopping func() bool
}

// NewProjector returns a projector. stopping reports whether the service shuts down; nil
// means that it never does.
func NewProjector(store ProjectionStore, stopping func() bool) *Projector {
	if stopping == nil {
		stopping = func() bool { return false }
	}
	return &Projector{store: store, stopping: stopping}
}

// Result says what became of a batch.
type Result struct {
	Summary readmodel.Summary
	// Gaps are the streams whose messages were refused because earlier ones are missing,
	// in key order. Everything else of the batch is applied, skipped or parked.
	Gaps []readmodel.Gap
}

func (r *Result) add(p readmodel.Plan) {
	r.Summary.Applied += p.Summary.Applied
	r.Summary.Skipped += p.Summary.Skipped
	r.Summary.Parked += p.Summary.Parked
	r.Summary.Refused += p.Summary.Refused
	r.Gaps = append(r.Gaps, p.Gaps...)
}

// Apply applies a batch whose messages are, within each stream, in order.
//
// Without an error the batch may be acknowledged, but for the streams in Gaps: each
// message is applied, was applied before, or is parked with the reason that it can never
// be. With an error it must come again, whole: the store is away, or the service shuts
// down. A crash at any point is harmless: versions make the second delivery idempotent.
//
// Usually that is one transaction. When the store says that it will never take the
// changes, the batch is made again stream by stream, and a stream that fails message by
// message, so that only what is wrong is parked.
func (p *Projector) Apply(ctx context.Context, messages []readmodel.Message) (Result, error) {
	var result Result
	plan, err := p.run(ctx, messages)
	if err == nil {
		result.add(plan)
		return result, nil
	}
	if permanent(err) == nil {
		return Result{}, err
	}
	for _, ofStream := range byStream(messages) {
		if err := p.applyStream(ctx, ofStream, &result); err != nil {
			return result, err
		}
	}
	return result, nil
}

// Lost returns those of the streams, sent up to the versions given, of which messages
// never came, in key order. A stream with parked messages is behind for a reason that
// sending it again does not mend. The error is a store that is away.
func (p *Projector) Lost(ctx context.Context, sent map[readmodel.Stream]int64) ([]readmodel.Gap, error) {
	streams := slices.SortedFunc(maps.Keys(sent), readmodel.Stream.Compare)
	states, err := p.store.Applied(ctx, streams)
	if err != nil {
		return nil, fmt.Errorf("compare heads: %w", err)
	}
	var lost []readmodel.Gap
	for _, s := range streams {
		if state := states[s]; state.Applied < sent[s] && !state.Parked {
			lost = append(lost, readmodel.Gap{Stream: s, Applied: state.Applied})
		}
	}
	return lost, nil
}

func (p *Projector) applyStream(ctx context.Context, messages []readmodel.Message, result *Result) error {
	plan, err := p.run(ctx, messages)
	if err == nil {
		result.add(plan)
		return nil
	}
	if permanent(err) == nil {
		return err
	}
	var gap []readmodel.Gap // one a stream is enough, and the last one knows most
	for _, m := range messages {
		plan, err := p.run(ctx, []readmodel.Message{m})
		if reason := permanent(err); reason != nil {
			m.Body, m.Err = nil, reason
			plan, err = p.run(ctx, []readmodel.Message{m})
		}
		if err != nil {
			return err
		}
		if len(plan.Gaps) > 0 {
			gap, plan.Gaps = plan.Gaps, nil
		}
		result.add(plan)
	}
	result.Gaps = append(result.Gaps, gap...)
	return nil
}

// run makes one transaction.
func (p *Projector) run(ctx context.Context, messages []readmodel.Message) (plan readmodel.Plan, err error) {
	defer func() {
		// A message that makes the projection panic does so every time.
		if v := recover(); v != nil {
			plan, err = readmodel.Plan{}, &PermanentError{Reason: readmodel.Recovered(v).Error()}
		}
	}()
	err = p.store.Project(ctx, streamsOf(messages), func(heads map[readmodel.Stream]readmodel.Head) (readmodel.Changes, error) {
		plan = readmodel.MakePlan(heads, messages, false)
		if len(plan.Changes.Parked) > 0 && (p.stopping() || ctx.Err() != nil) {
			return readmodel.Changes{}, ErrShuttingDown
		}
		return plan.Changes, nil
	})
	if err != nil {
		return readmodel.Plan{}, fmt.Errorf("project a batch: %w", err)
	}
	return plan, nil
}

// permanent returns why err will come again each time, or nil.
func permanent(err error) *PermanentError {
	var p *PermanentError
	errors.As(err, &p)
	return p
}

// streamsOf returns the distinct streams of messages in key order.
func streamsOf(messages []readmodel.Message) []readmodel.Stream {
	streams := make([]readmodel.Stream, 0, len(messages))
	for _, m := range messages {
		streams = append(streams, m.Stream)
	}
	slices.SortFunc(streams, readmodel.Stream.Compare)
	return slices.Compact(streams)
}

func byStream(messages []readmodel.Message) [][]readmodel.Message {
	var groups [][]readmodel.Message
	for _, s := range streamsOf(messages) {
		var group []readmodel.Message
		for _, m := range messages {
			if m.Stream == s {
				group = append(group, m)
			}
		}
		groups = append(groups, group)
	}
	return groups
}
