package transport

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/tests"
	"github.com/stretchr/testify/require"
)

// watermill's suite is written for brokers, which keep messages. These transports keep
// none, so the suite sees them as they are used: behind an outbox whose relay publishes
// the oldest message until it is acknowledged. The outboxes are the topics', and so
// outlive a pair of publisher and subscriber, as the suite expects of a broker.

func TestLocalConformsToWatermill(t *testing.T) {
	t.Parallel()
	outboxes := new(outboxes)
	conform(t, func(*testing.T) (message.Publisher, message.Subscriber) {
		local := NewLocal(nil)
		return inserter{outboxes}, newRelay(outboxes, local, local, nil)
	})
}

func TestHTTPConformsToWatermill(t *testing.T) {
	t.Parallel()
	outboxes := new(outboxes)
	conform(t, func(t *testing.T) (message.Publisher, message.Subscriber) {
		t.Helper()
		local := NewLocal(nil)
		everyTopic := func(string) bool { return true }
		server := httptest.NewServer(newHTTPHandler(local, "token", 1<<20, everyTopic))
		publisher, err := NewHTTPPublisher(HTTPPublisherConfig{URL: server.URL, Token: "token"}, nil)
		require.NoError(t, err)
		return inserter{outboxes}, newRelay(outboxes, enveloped{publisher}, unwrapped{local}, server.Close)
	})
}

// conform runs all of the suite but for what it skips by the features below: consumer
// groups, old messages for new subscribers, and the restart of a broker.
func conform(t *testing.T, constructor tests.PubSubConstructor) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, tests.TestContext, tests.PubSubConstructor){
		"PublishSubscribe":                  tests.TestPublishSubscribe,
		"ConcurrentSubscribe":               tests.TestConcurrentSubscribe,
		"ConcurrentSubscribeMultipleTopics": tests.TestConcurrentSubscribeMultipleTopics,
		"ResendOnError":                     tests.TestResendOnError,
		"NoAck":                             tests.TestNoAck,
		"ContinueAfterSubscribeClose":       tests.TestContinueAfterSubscribeClose,
		"ConcurrentClose":                   tests.TestConcurrentClose,
		"ContinueAfterErrors":               tests.TestContinueAfterErrors,
		"PublishSubscribeInOrder":           tests.TestPublishSubscribeInOrder,
		"PublisherClose":                    tests.TestPublisherClose,
		"Topic":                             tests.TestTopic,
		"MessageCtx":                        tests.TestMessageCtx,
		"SubscribeCtx":                      tests.TestSubscribeCtx,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, tests.TestContext{
				TestID:   tests.NewTestID(),
				Features: tests.Features{GuaranteedOrder: true, Persistent: true},
			}, constructor)
		})
	}
}

// outboxes has an outbox for each topic.
type outboxes struct{ byTopic sync.Map }

func (o *outboxes) of(topic string) *outbox {
	box, _ := o.byTopic.LoadOrStore(topic, &outbox{reader: make(chan struct{}, 1), wake: make(chan struct{}, 1)})
	return box.(*outbox) //nolint:errcheck,forcetypeassert // the map holds nothing else
}

// outbox has the messages of a topic that nobody acknowledged yet.
type outbox struct {
	reader chan struct{} // holds a token while a relay reads, as the partition's lock does
	wake   chan struct{}
	mu     sync.Mutex
	rows   []*message.Message
}

func (o *outbox) insert(messages ...*message.Message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, msg := range messages {
		o.rows = append(o.rows, msg.Copy())
	}
	o.signal()
}

func (o *outbox) signal() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

func (o *outbox) first() *message.Message {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.rows) == 0 {
		return nil
	}
	return o.rows[0].Copy()
}

func (o *outbox) deleteFirst() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.rows = o.rows[1:]
}

// inserter is a publisher that writes into an outbox.
type inserter struct{ outboxes *outboxes }

func (i inserter) Publish(topic string, messages ...*message.Message) error {
	i.outboxes.of(topic).insert(messages...)
	return nil
}

func (inserter) Close() error { return nil }

// relay is a subscriber that reads outboxes through a transport.
type relay struct {
	outboxes *outboxes
	pub      message.Publisher
	sub      message.Subscriber
	after    func()
	ctx      context.Context
	cancel   context.CancelFunc
	running  sync.WaitGroup
	once     sync.Once

	mu   sync.Mutex
	subs map[string]context.CancelFunc
}

func newRelay(outboxes *outboxes, pub message.Publisher, sub message.Subscriber, after func()) *relay {
	ctx, cancel := context.WithCancel(context.Background())
	return &relay{outboxes: outboxes, pub: pub, sub: sub, after: after, ctx: ctx, cancel: cancel, subs: make(map[string]context.CancelFunc)}
}

// Subscribe takes the place of an earlier subscription, which the suite may leave open
// without reading from it: a topic has one consumer.
func (r *relay) Subscribe(ctx context.Context, topic string) (<-chan *message.Message, error) {
	ctx, cancel := context.WithCancel(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if before := r.subs[topic]; before != nil {
		before()
	}
	r.subs[topic] = cancel
	messages, err := r.sub.Subscribe(ctx, topic)
	if err != nil {
		cancel()
		return nil, err
	}
	r.running.Go(func() { r.run(ctx, topic) })
	return messages, nil
}

// run publishes the outbox's first message until it is acknowledged, then the next.
func (r *relay) run(ctx context.Context, topic string) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.ctx, cancel)() //nolint:contextcheck // two contexts end a run
	box := r.outboxes.of(topic)
	for ctx.Err() == nil {
		select {
		case box.reader <- struct{}{}:
		case <-ctx.Done():
			return
		}
		msg := box.first()
		var err error
		if msg != nil {
			msg.SetContext(ctx)
			if err = r.pub.Publish(topic, msg); err == nil {
				box.deleteFirst()
			}
		}
		<-box.reader
		if err == nil && msg != nil {
			continue
		}
		select {
		case <-box.wake:
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
		}
	}
}

func (r *relay) Close() error {
	var err error
	r.once.Do(func() {
		r.cancel()
		err = r.pub.Close()
		if subErr := r.sub.Close(); err == nil {
			err = subErr
		}
		r.running.Wait()
		if r.after != nil {
			r.after()
		}
	})
	return err
}

// envelope carries what HTTP does not: the suite compares ids and metadata, which relay
// messages have no use for.
type envelope struct {
	UUID     string
	Metadata message.Metadata
	Payload  []byte
}

type enveloped struct{ message.Publisher }

func (e enveloped) Publish(topic string, messages ...*message.Message) error {
	for _, msg := range messages {
		raw, err := json.Marshal(envelope{msg.UUID, msg.Metadata, msg.Payload})
		if err != nil {
			return err
		}
		if err := e.Publisher.Publish(topic, message.NewMessageWithContext(msg.Context(), msg.UUID, raw)); err != nil {
			return err
		}
	}
	return nil
}

type unwrapped struct{ message.Subscriber }

func (u unwrapped) Subscribe(ctx context.Context, topic string) (<-chan *message.Message, error) {
	in, err := u.Subscriber.Subscribe(ctx, topic)
	if err != nil {
		return nil, err
	}
	out := make(chan *message.Message)
	go func() {
		defer close(out)
		for msg := range in {
			var e envelope
			if err := json.Unmarshal(msg.Payload, &e); err != nil {
				msg.Nack()
				continue
			}
			// In place: whoever acks it acks the transport's own message.
			msg.UUID, msg.Metadata, msg.Payload = e.UUID, e.Metadata, e.Payload
			select {
			case out <- msg:
			case <-msg.Context().Done():
				msg.Nack()
			}
		}
	}()
	return out, nil
}
