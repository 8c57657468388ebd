package transport

import (
	"context"
	"fmt"
	"sync"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
)

// Local hands messages from publishers to subscribers of the same process. When a topic
// has several subscriptions, each message goes to one of them. It is safe for concurrent
// use; make it with [NewLocal].
type Local struct {
	log     watermill.LoggerAdapter
	closing chan struct{}
	running sync.WaitGroup // subscriptions' goroutines

	mu     sync.Mutex // guards what follows
	closed bool
	lanes  map[string]*lane
}

var (
	_ message.Publisher  = (*Local)(nil)
	_ message.Subscriber = (*Local)(nil)
)

// lane is one topic.
type lane struct {
	turn     chan struct{}  // holds a token while a message is under way
	handoff  chan *delivery // unbuffered: a message is the publisher's until it is taken
	subs     int            // subscriptions; guarded by Local.mu
	deserted chan struct{}  // closed while there are none; guarded by Local.mu
}

// delivery is one message on its way to one subscriber.
type delivery struct {
	msg     *message.Message
	ctx     context.Context // the publisher's, which ends the delivery
	outcome chan error      // holds one: the delivery's goroutine never waits for the publisher
}

// NewLocal returns an open Local. Nil as log means none.
func NewLocal(log watermill.LoggerAdapter) *Local {
	if log == nil {
		log = watermill.NopLogger{}
	}
	return &Local{log: log, closing: make(chan struct{}), lanes: make(map[string]*lane)}
}

// Publish hands over each message in turn and waits until it is acknowledged; see the
// package's guarantee. It stops at the first that is not, with [ErrNacked] and the
// reason given to [Refuse], [ErrNoSubscriber], [ErrClosed], or the error of the
// message's context. The messages before that one are acknowledged, those after it were
// not sent. After an error the message may nevertheless have been processed.
//
// The subscriber gets a copy; payload bytes are shared and MUST NOT be changed. When the
// message's context ends, so does the context of the copy.
func (l *Local) Publish(topic string, messages ...*message.Message) error {
	for _, msg := range messages {
		if err := l.publish(topic, msg); err != nil {
			return fmt.Errorf("publish to %s: %w", topic, err)
		}
	}
	return nil
}

func (l *Local) publish(topic string, msg *message.Message) error {
	ctx := msg.Context()
	ln, deserted, err := l.lane(topic)
	if err != nil {
		return err
	}
	select {
	case ln.turn <- struct{}{}:
	case <-l.closing:
		return ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	// From here on, the turn belongs to the delivery once it is taken, else to us.
	d := &delivery{msg: msg, ctx: ctx, outcome: make(chan error, 1)}
	select {
	case ln.handoff <- d:
	case <-deserted:
		<-ln.turn
		return ErrNoSubscriber
	case <-l.closing:
		<-ln.turn
		return ErrClosed
	case <-ctx.Done():
		<-ln.turn
		return context.Cause(ctx)
	}
	select {
	case err := <-d.outcome:
		return err
	case <-ctx.Done():
		// An acknowledgement that came first counts.
		select {
		case err := <-d.outcome:
			return err
		default:
			return context.Cause(ctx)
		}
	}
}

// lane returns the topic's lane, with the channel that tells that it has no subscription.
func (l *Local) lane(topic string) (*lane, <-chan struct{}, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, nil, ErrClosed
	}
	ln := l.lanes[topic]
	if ln == nil || ln.subs == 0 {
		return nil, nil, ErrNoSubscriber
	}
	return ln, ln.deserted, nil
}

// Subscribe returns a channel of the topic's messages. The next one comes only after the
// one before was acked or nacked. The channel is closed when ctx ends or the transport
// is closed; a message that is then neither acked nor nacked counts as refused. A
// message's context has ctx's values and ends with ctx, with the publisher's context and
// with the ack or nack.
func (l *Local) Subscribe(ctx context.Context, topic string) (<-chan *message.Message, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, ErrClosed
	}
	ln := l.lanes[topic]
	if ln == nil {
		ln = &lane{turn: make(chan struct{}, 1), handoff: make(chan *delivery)}
		l.lanes[topic] = ln
	}
	if ln.subs == 0 {
		ln.deserted = make(chan struct{})
	}
	ln.subs++
	out := make(chan *message.Message)
	l.running.Go(func() {
		defer close(out)
		defer l.leave(ln)
		l.serve(ctx, ln, out)
	})
	l.log.Debug("Subscribed", watermill.LogFields{"topic": topic})
	return out, nil
}

// leave takes a subscription off its lane.
func (l *Local) leave(ln *lane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ln.subs--
	if ln.subs == 0 {
		close(ln.deserted)
	}
}

// serve takes one message after the other until the subscription ends.
func (l *Local) serve(ctx context.Context, ln *lane, out chan<- *message.Message) {
	for {
		select {
		case <-l.closing:
			return
		case <-ctx.Done():
			return
		case d := <-ln.handoff:
			d.outcome <- l.deliver(ctx, d, out)
			<-ln.turn
		}
	}
}

// deliver shows a message to the subscriber and returns what became of it. It returns
// only once the subscriber has answered or the subscription is at its end: while a
// handler still works, its topic's next message waits, also when the publisher has
// given up.
func (l *Local) deliver(ctx context.Context, d *delivery, out chan<- *message.Message) error {
	msgCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.ctx, cancel)() //nolint:contextcheck // two contexts end a delivery
	msgCtx, reason := withRefusal(msgCtx)
	msg := d.msg.Copy()
	msg.SetContext(msgCtx)

	select {
	case out <- msg:
	case <-d.ctx.Done():
		return context.Cause(d.ctx) //nolint:contextcheck // as above
	case <-ctx.Done():
		return ErrNoSubscriber
	case <-l.closing:
		return ErrClosed
	}
	var ended error
	select {
	case <-msg.Acked():
		return nil
	case <-msg.Nacked():
		return nacked(reason.get())
	case <-ctx.Done():
		ended = ErrNacked
	case <-l.closing:
		ended = ErrClosed
	}
	// Several of these can be true at once; an acknowledgement stands for a commit.
	select {
	case <-msg.Acked():
		return nil
	default:
		return ended
	}
}

// Close ends all subscriptions, closes their channels and refuses what is published from
// then on. Publishers that wait for an acknowledgement get [ErrClosed]. Close waits for
// no handler; to let one finish, close the subscriber's router first. To close twice
// does nothing.
func (l *Local) Close() error {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.closing)
	}
	l.mu.Unlock()
	l.running.Wait()
	return nil
}
