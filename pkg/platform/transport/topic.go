package transport

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// Partitions is the number of partitions of the outbox. It is fixed for good: a stream's
// partition is stored with its rows.
const Partitions = 16

// Metadata keys and the content type of relay messages.
const (
	MetadataContentType = "content-type"
	MetadataPartition   = "partition"
	MetadataTraceparent = "traceparent"

	ContentType = "application/cloudevents-batch+json"
)

const topicPrefix = "verbatim.outbox."

// Partition returns the partition, 0 to 15, of a stream: xxHash64 (seed 0) of its id's
// bytes, modulo [Partitions]. It never changes.
func Partition(streamID string) int {
	return int(xxhash.Sum64String(streamID) % Partitions)
}

// Topic returns the topic of a partition: "verbatim.outbox.07" for 7.
func Topic(partition int) string {
	return fmt.Sprintf("%s%02d", topicPrefix, partition)
}

// Topics returns the topics of all partitions, in order.
func Topics() []string {
	topics := make([]string, Partitions)
	for p := range topics {
		topics[p] = Topic(p)
	}
	return topics
}

// PartitionOf returns the partition of a topic, and false for what is not exactly one of
// [Topics].
func PartitionOf(topic string) (int, bool) {
	digits, ok := strings.CutPrefix(topic, topicPrefix)
	if !ok {
		return 0, false
	}
	p, err := strconv.Atoi(digits)
	if err != nil || p < 0 || p >= Partitions || Topic(p) != topic {
		return 0, false
	}
	return p, true
}
