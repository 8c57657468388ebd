package transport

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/ThreeDotsLabs/watermill/message"
)

var (
	// ErrNacked says that the subscriber refused the message. It may be sent again.
	ErrNacked = errors.New("transport: the subscriber did not acknowledge the message")
	// ErrNoSubscriber says that nobody subscribes to the topic at present.
	ErrNoSubscriber = errors.New("transport: nobody subscribes to the topic")
	// ErrClosed says that the transport is closed or was closed before the acknowledgement.
	ErrClosed = errors.New("transport: closed")
)

// StreamGap is one stream of which messages are missing.
type StreamGap struct {
	// Kind is the stream's kind, such as "archive".
	Kind string `json:"kind"`
	// ID is the stream's id.
	ID string `json:"id"`
	// Applied is the version up to which the consumer has everything; 0 for none.
	Applied int64 `json:"applied"`
}

// GapError is a consumer's refusal of a batch, because messages are missing before it in
// some of its streams. The publisher sends again from the first missing version.
type GapError struct {
	Streams []StreamGap
}

// Error names the first stream of the gap.
func (e *GapError) Error() string {
	if len(e.Streams) == 0 {
		return "transport: messages are missing in a stream"
	}
	first := e.Streams[0]
	text := fmt.Sprintf("transport: messages are missing after version %d of the stream %s/%s", first.Applied, first.Kind, first.ID)
	if more := len(e.Streams) - 1; more > 0 {
		text += fmt.Sprintf(" and in %d more", more)
	}
	return text
}

type refusalKey struct{}

// refusal is where a consumer leaves its reason. It travels in the message's context,
// which middleware derives from, and is safe for concurrent use.
type refusal struct {
	mu  sync.Mutex
	err error
}

func (r *refusal) set(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
}

func (r *refusal) get() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Refuse leaves err as the reason why msg is about to be nacked; the last call before
// the nack counts. In process, the publisher's error wraps err; over HTTP, it does when
// err is or wraps a [*GapError]. For a message that no transport of this package
// delivered, Refuse does nothing. An acknowledgement makes the reason void.
func Refuse(msg *message.Message, err error) {
	if r, ok := msg.Context().Value(refusalKey{}).(*refusal); ok {
		r.set(err)
	}
}

func withRefusal(ctx context.Context) (context.Context, *refusal) {
	r := new(refusal)
	return context.WithValue(ctx, refusalKey{}, r), r
}

// nacked is the publisher's error for a refused message.
func nacked(reason error) error {
	if reason == nil {
		return ErrNacked
	}
	return fmt.Errorf("%w: %w", ErrNacked, reason)
}
