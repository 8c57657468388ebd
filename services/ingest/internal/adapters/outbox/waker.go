package outbox

import (
	"math/bits"
	"sync/atomic"

	"verbatim.internal/pkg/platform/transport"
)

// Waker passes on that partitions have new rows: to this process's readers, and
// for partitions that another replica reads, to the notifier.
// Safe for concurrent use.
type Waker struct {
	signals [transport.Partitions]chan struct{}
	owned   atomic.Uint32 // partitions this replica reads, a bit each
	foreign atomic.Uint32 // partitions of other replicas with new rows
	notify  chan struct{}
}

// NewWaker returns a waker of a replica that reads nothing yet.
func NewWaker() *Waker {
	w := &Waker{notify: make(chan struct{}, 1)}
	for p := range w.signals {
		w.signals[p] = make(chan struct{}, 1)
	}
	return w
}

// Wake tells the reader of a partition to look. It never blocks, and many calls
// before the reader looks are one.
func (w *Waker) Wake(partition int) {
	bit := uint32(1) << partition
	if w.owned.Load()&bit == 0 {
		w.foreign.Or(bit)
		signal(w.notify)
	}
	// Also when another replica owns it: ownership may just be changing.
	signal(w.signals[partition])
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// takeForeign returns the partitions to notify other replicas about.
func (w *Waker) takeForeign() []int {
	var partitions []int
	for mask := w.foreign.Swap(0); mask != 0; mask &= mask - 1 {
		partitions = append(partitions, bits.TrailingZeros32(mask))
	}
	return partitions
}
