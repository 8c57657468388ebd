package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5/pgxpool"

	"verbatim.internal/pkg/contracts/cloudevent"
	"verbatim.internal/pkg/platform/transport"
)

const (
	firstPause = 20 * time.Millisecond
	maxPause   = 10 * time.Second
	// answerPatience bounds how long the answer to a batch that is on its way is waited
	// for when the subscription ends.
	answerPatience = 5 * time.Second
	// forgetTimeout bounds the last deletion while closing; what it misses is sent again.
	forgetTimeout = 2 * time.Second
)

// ErrClosed is a subscription to a closed reader.
var ErrClosed = errors.New("the outbox reader is closed")

// Reader is a watermill subscriber over the outbox. Its topics are those of
// [transport.Topic]; each message is one batch of CloudEvents of that partition.
//
// Ack: the batch's rows are deleted (with the read of the next batch). Nack: the
// same rows come again after a growing, jittered pause. Only one message of a
// partition is out at a time. Safe for concurrent use.
type Reader struct {
	store  *store
	leases *Leases
	waker  *Waker
	log    *slog.Logger

	// questions are what a partition is to ask once it has nothing to send.
	questions [transport.Partitions]chan question

	mu      sync.Mutex
	closed  bool
	closing chan struct{}
	running sync.WaitGroup
}

// NewReader returns a reader over the relay's own pool.
func NewReader(pool *pgxpool.Pool, leases *Leases, waker *Waker, log *slog.Logger) *Reader {
	r := &Reader{store: &store{pool: pool, log: log}, leases: leases, waker: waker, log: log, closing: make(chan struct{})}
	for p := range r.questions {
		r.questions[p] = make(chan question)
	}
	return r
}

// Subscribe implements message.Subscriber for one partition's topic. The channel
// is closed when ctx ends or the reader is closed.
func (r *Reader) Subscribe(ctx context.Context, topic string) (<-chan *message.Message, error) {
	partition := -1
	for p := range transport.Partitions {
		if transport.Topic(p) == topic {
			partition = p
		}
	}
	if partition < 0 {
		return nil, fmt.Errorf("the outbox has no topic %q", topic)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, ErrClosed
	}
	ctx, cancel := context.WithCancel(ctx)
	out := make(chan *message.Message)
	r.running.Go(func() {
		defer close(out)
		defer cancel()
		r.serve(ctx, partition, out)
	})
	r.running.Go(func() {
		select {
		case <-r.closing:
			cancel()
		case <-ctx.Done():
		}
	})
	return out, nil
}

// Close ends all subscriptions. A batch that is out is waited for, for 5 s; without
// an answer its rows stay, and are sent again.
func (r *Reader) Close() error {
	r.mu.Lock()
	if !r.closed {
		r.closed = true
		close(r.closing)
	}
	r.mu.Unlock()
	r.running.Wait()
	return nil
}

// serve reads one partition for as long as this replica may.
func (r *Reader) serve(ctx context.Context, partition int, out chan<- *message.Message) {
	for {
		lease, err := r.leases.Await(ctx, partition)
		if err != nil {
			return
		}
		held, cancel := context.WithCancel(ctx)
		stop := context.AfterFunc(lease, cancel)
		r.drain(held, partition, out)
		stop()
		cancel()
	}
}

// drain sends batch after batch until ctx ends.
func (r *Reader) drain(ctx context.Context, partition int, out chan<- *message.Message) {
	var handled []int64 // acknowledged rows that are not deleted yet
	var asks *question  // once nothing is left to send
	wait, size := backoff{}, batchSize(batchRows)
	for ctx.Err() == nil {
		rows, err := r.store.next(ctx, partition, int(size), handled)
		if err != nil {
			r.failed(ctx, partition, err)
			wait.pause(ctx)
			continue
		}
		handled = nil
		if len(rows) == 0 && asks != nil {
			r.ask(ctx, partition, *asks, out)
			asks = nil
			continue
		}
		if len(rows) == 0 {
			select {
			case <-r.waker.signals[partition]:
			case q := <-r.questions[partition]:
				asks = &q // after one more look
			case <-ctx.Done():
			}
			continue
		}
		if err := r.send(ctx, partition, rows, out); err != nil {
			if !errors.Is(err, errNacked) { // the relay has logged why it was refused
				r.failed(ctx, partition, err)
			}
			size.shrink()
			wait.pause(ctx)
			continue
		}
		size.grow()
		wait = backoff{}
		for _, row := range rows {
			handled = append(handled, row.id)
		}
	}
	if len(handled) > 0 {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), forgetTimeout)
		defer cancel()
		_ = r.store.forget(ctx, partition, handled)
	}
}

func (r *Reader) failed(ctx context.Context, partition int, err error) {
	if ctx.Err() == nil {
		r.log.WarnContext(ctx, "the outbox cannot be read; it is tried again", slog.Int("partition", partition), slog.String("error", reason(err)))
	}
}

var errNacked = errors.New("the batch was refused")

// send hands out the rows' messages one after the other and waits for each answer.
func (r *Reader) send(ctx context.Context, partition int, rows []row, out chan<- *message.Message) error {
	return r.store.load(ctx, rows, func(events []cloudevent.Event) error { return r.hand(ctx, partition, events, out) })
}

// hand hands out one message and waits for its answer.
func (r *Reader) hand(ctx context.Context, partition int, events []cloudevent.Event, out chan<- *message.Message) error {
	msg, err := newMessage(partition, events)
	if err != nil {
		return err
	}
	// What is on its way may arrive, also when the subscription ends meanwhile.
	msgCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	msg.SetContext(msgCtx)
	select {
	case out <- msg:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-msg.Acked():
		return nil
	case <-msg.Nacked():
		return errNacked
	case <-ctx.Done():
	}
	last := time.NewTimer(answerPatience)
	defer last.Stop()
	select {
	case <-msg.Acked():
		return nil
	case <-msg.Nacked():
		return errNacked
	case <-last.C:
		return ctx.Err()
	}
}

// newMessage puts events of one partition into one message.
func newMessage(partition int, events []cloudevent.Event) (*message.Message, error) {
	body, err := cloudevent.EncodeBatch(events)
	if err != nil {
		return nil, err
	}
	msg := message.NewMessage(watermill.NewUUID(), body)
	msg.Metadata.Set(transport.MetadataContentType, cloudevent.BatchContentType)
	msg.Metadata.Set(transport.MetadataPartition, strconv.Itoa(partition))
	msg.Metadata.Set(transport.MetadataTraceparent, events[0].TraceParent)
	return msg, nil
}

// batchSize is how many rows the next batch may have. It shrinks when a batch is
// refused, so that trying a receiver that is away costs next to nothing.
type batchSize int

const sizeStep = 8

func (s *batchSize) shrink() { *s = max(*s/sizeStep, 1) }

func (s *batchSize) grow() { *s = min(*s*sizeStep, batchRows) }

// backoff grows from firstPause to maxPause, with jitter.
type backoff struct{ last time.Duration }

func (b *backoff) pause(ctx context.Context) {
	b.last = min(max(2*b.last, firstPause), maxPause)
	pause(ctx, b.last/2+rand.N(b.last/2+1)) //nolint:gosec // jitter
}
