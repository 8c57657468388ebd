package transport_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/platform/transport"
)

// A change of any of these numbers would send the rows of existing streams out of order.
func TestPartitionNeverChanges(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]int{
		"":                                     0xef46db3751d8e999 % 16, // xxHash64's published vectors
		"a":                                    0xd24ec4f1a98c6e5b % 16,
		"abc":                                  0x44bc2cf5ad770999 % 16,
		"00000000-0000-0000-0000-000000000000": 9,
		"3f0c6c2e-6f0b-4a57-9d2d-6a4b1a0e7c11": 2,
		"run_01JD5M3W8KQ7":                     14,
		"ünïcödé":                              12,
	} {
		require.Equal(t, want, transport.Partition(id), "%q", id)
	}
}

func TestPartitionSpreads(t *testing.T) {
	t.Parallel()
	counts := make([]int, transport.Partitions)
	const streams = 16_000
	for i := range streams {
		counts[transport.Partition(string(rune('a'+i%26))+string(rune(0x100+i)))]++
	}
	for p, n := range counts {
		require.InDelta(t, streams/transport.Partitions, n, 150, "partition %d", p)
	}
}

func TestTopics(t *testing.T) {
	t.Parallel()
	require.Equal(t, "verbatim.outbox.07", transport.Topic(7))
	require.Len(t, transport.Topics(), transport.Partitions)
	for want, topic := range transport.Topics() {
		got, ok := transport.PartitionOf(topic)
		require.True(t, ok)
		require.Equal(t, want, got)
	}
	for _, foreign := range []string{"", "verbatim.outbox.", "verbatim.outbox.7", "verbatim.outbox.16", "verbatim.outbox.-1", "verbatim.outbox.007", "verbatim.outbox.+7", "x.07", "verbatim.outbox.07/"} {
		_, ok := transport.PartitionOf(foreign)
		require.False(t, ok, foreign)
	}
}
