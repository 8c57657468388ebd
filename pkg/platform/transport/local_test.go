package transport_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/platform/transport"
)

func newMessage(ctx context.Context, payload string) *message.Message {
	return message.NewMessageWithContext(ctx, messageID(payload), []byte(payload))
}

func messageID(payload string) string { return fmt.Sprintf("id-%x", payload) }

// start publishes in a goroutine and returns where its error will be.
func start(publisher message.Publisher, topic string, messages ...*message.Message) <-chan error {
	result := make(chan error, 1)
	go func() { result <- publisher.Publish(topic, messages...) }()
	return result
}

func requireWaiting[T any](t *testing.T, ch <-chan T, why string) {
	t.Helper()
	synctest.Wait()
	select {
	case got, open := <-ch:
		t.Fatalf("%s: got %v, open %v", why, got, open)
	default:
	}
}

func subscribe(t *testing.T, local *transport.Local, topic string) <-chan *message.Message {
	t.Helper()
	messages, err := local.Subscribe(t.Context(), topic)
	require.NoError(t, err)
	return messages
}

func TestPublishReturnsAfterTheAck(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		local := transport.NewLocal(nil)
		messages := subscribe(t, local, "t")
		original := newMessage(t.Context(), "a")
		original.Metadata.Set("k", "v")
		result := start(local, "t", original)

		got := <-messages
		require.NotSame(t, original, got)
		require.True(t, original.Equals(got))
		requireWaiting(t, result, "Publish returned before the ack")
		require.NoError(t, got.Context().Err())
		require.True(t, got.Ack())
		require.NoError(t, <-result)
		<-got.Context().Done()
		require.NoError(t, local.Close())
	})
}

func TestANackIsThePublishersError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		local := transport.NewLocal(nil)
		messages := subscribe(t, local, "t")
		first, second := newMessage(t.Context(), "a"), newMessage(t.Context(), "b")

		result := start(local, "t", first, second)
		got := <-messages
		transport.Refuse(got, errors.New("an earlier thought"))
		transport.Refuse(got, fmt.Errorf("apply: %w", &transport.GapError{Streams: []transport.StreamGap{{Kind: "archive", ID: "c", Applied: 3}}}))
		got.Nack()
		err := <-result
		var gap *transport.GapError
		require.ErrorIs(t, err, transport.ErrNacked)
		require.ErrorAs(t, err, &gap)
		require.Equal(t, int64(3), gap.Streams[0].Applied)
		require.ErrorContains(t, err, "after version 3 of the stream archive/c")
		requireWaiting(t, messages, "the message after a refused one was sent")

		// The same message can be published again, and a refusal does not stick to it.
		result = start(local, "t", first)
		got = <-messages
		got.Nack()
		err = <-result
		require.ErrorIs(t, err, transport.ErrNacked)
		require.NotErrorAs(t, err, &gap)

		// A reason before an ack is void.
		result = start(local, "t", first)
		got = <-messages
		transport.Refuse(got, errors.New("never mind"))
		got.Ack()
		require.NoError(t, <-result)
		transport.Refuse(first, errors.New("not delivered by a transport"))
		require.NoError(t, local.Close())
	})
}

func TestNobodyThereIsAnError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		local := transport.NewLocal(nil)
		require.ErrorIs(t, local.Publish("t", newMessage(t.Context(), "a")), transport.ErrNoSubscriber)

		ctx, cancel := context.WithCancel(t.Context())
		messages, err := local.Subscribe(ctx, "t")
		require.NoError(t, err)
		busy := start(local, "t", newMessage(t.Context(), "a"))
		got := <-messages
		waiting := start(local, "t", newMessage(t.Context(), "b"))
		requireWaiting(t, waiting, "two messages of a topic are under way")
		require.ErrorIs(t, local.Publish("other", newMessage(t.Context(), "c")), transport.ErrNoSubscriber)

		cancel()
		require.ErrorIs(t, <-busy, transport.ErrNacked)
		require.ErrorIs(t, <-waiting, transport.ErrNoSubscriber)
		_, open := <-messages
		require.False(t, open)
		got.Ack() // too late to count
		require.ErrorIs(t, local.Publish("t", newMessage(t.Context(), "d")), transport.ErrNoSubscriber)

		again := subscribe(t, local, "t")
		result := start(local, "t", newMessage(t.Context(), "e"))
		(<-again).Ack()
		require.NoError(t, <-result)
		require.NoError(t, local.Close())
	})
}

func TestCloseNeverAcknowledges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		local := transport.NewLocal(nil)
		messages := subscribe(t, local, "t")
		unread := subscribe(t, local, "u")
		inFlight := start(local, "t", newMessage(t.Context(), "a"))
		got := <-messages
		queued := start(local, "t", newMessage(t.Context(), "b"))
		offered := start(local, "u", newMessage(t.Context(), "c"))
		synctest.Wait()

		require.NoError(t, local.Close())
		for _, result := range []<-chan error{inFlight, queued, offered} {
			require.ErrorIs(t, <-result, transport.ErrClosed)
		}
		<-got.Context().Done()
		for _, ch := range []<-chan *message.Message{messages, unread} {
			_, open := <-ch
			require.False(t, open)
		}
		require.ErrorIs(t, local.Publish("t", newMessage(t.Context(), "d")), transport.ErrClosed)
		_, err := local.Subscribe(t.Context(), "t")
		require.ErrorIs(t, err, transport.ErrClosed)
		require.NoError(t, local.Close())
	})
}

func TestThePublishersContextEndsTheDelivery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		local := transport.NewLocal(nil)
		messages := subscribe(t, local, "t")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()

		result := start(local, "t", newMessage(ctx, "a"))
		slow := <-messages
		require.ErrorIs(t, <-result, context.DeadlineExceeded)
		<-slow.Context().Done()

		// The handler still works: the next message waits for it, so that two of one topic are
		// never under way.
		next := start(local, "t", newMessage(t.Context(), "b"))
		requireWaiting(t, messages, "the next message did not wait for the handler")
		slow.Nack()
		got := <-messages
		require.Equal(t, "b", string(got.Payload))
		got.Ack()
		require.NoError(t, <-next)

		// Nobody reads: the offer ends with its context too.
		require.ErrorIs(t, <-start(local, "t", newMessage(ctx, "c")), context.DeadlineExceeded)
		require.NoError(t, local.Close())
	})
}

func TestTopicsDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		local := transport.NewLocal(nil)
		stuck, free := subscribe(t, local, "stuck"), subscribe(t, local, "free")
		blocked := start(local, "stuck", newMessage(t.Context(), "a"))
		held := <-stuck
		for range 3 {
			result := start(local, "free", newMessage(t.Context(), "b"))
			(<-free).Ack()
			require.NoError(t, <-result)
		}
		held.Ack()
		require.NoError(t, <-blocked)
		require.NoError(t, local.Close())
	})
}

// Whatever happens at the same time, nil means that the subscriber acknowledged.
func TestNilMeansAcknowledged(t *testing.T) {
	t.Parallel()
	for range 200 {
		local := transport.NewLocal(nil)
		subCtx, leave := context.WithCancel(t.Context())
		messages, err := local.Subscribe(subCtx, "t")
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())

		var wg sync.WaitGroup
		acked := make(map[string]bool)
		wg.Go(func() {
			for i := 0; ; i++ {
				msg, open := <-messages
				if !open {
					return
				}
				if i%3 == 2 {
					msg.Nack()
					continue
				}
				// Noted before: an ack that comes too late is no lie, a nil without an ack is.
				acked[msg.UUID] = true
				msg.Ack()
			}
		})
		results := make([]error, 8)
		ids := make([]string, len(results))
		for i := range results {
			msg := newMessage(ctx, fmt.Sprint(i))
			ids[i] = msg.UUID
			wg.Go(func() { results[i] = local.Publish("t", msg) })
		}
		wg.Go(cancel)
		wg.Go(leave)
		wg.Go(func() { _ = local.Close() })
		wg.Wait()
		for i, err := range results {
			if err == nil {
				require.True(t, acked[ids[i]], "Publish returned nil for a message that nobody acknowledged")
			}
		}
	}
}
