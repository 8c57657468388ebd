// Package transport carries relay messages from the outbox to the read model, behind
// watermill's Publisher and Subscriber.
//
// # Guarantee
//
// A transport here is a hand-off and holds nothing. Publish returns nil only after the
// subscriber has acknowledged the message, which it does after its own commit. A
// refusal, a missing subscriber, a closed transport, a time-out or a crash is an error,
// and the publisher, whose outbox still has the message, sends it again. So nothing is
// lost here and nothing is delivered once only: receivers MUST tolerate a message that
// comes again, which the projection does by stream versions.
//
// Within a topic, one message is in flight at a time and the order of Publish calls that
// follow each other is kept. Between topics there is no order.
//
// # Messages
//
// One message is one batch of CloudEvents of one partition. Its metadata:
//
//	content-type   application/cloudevents-batch+json
//	partition      the partition's number
//	traceparent    W3C trace context, when there is one
//
// # Refusals
//
// A consumer that misses messages of a stream says so with [Refuse] and a [GapError]
// before it nacks. The error reaches the publisher through every transport, so that the
// relay can go back to the gap. Other reasons stay on the consumer's side when the
// transport crosses a process.
//
// # Transports
//
// [Local] hands over within a process. [HTTPPublisher] and [NewHTTPHandler] put HTTP in
// front of a Local: POST /internal/relay/{topic}.
package transport
