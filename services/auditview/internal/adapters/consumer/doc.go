// Package consumer receives ingest's batches through watermill and has them projected.
//
// There is one handler a partition, and one batch in flight in each. A batch is
// acknowledged once everything in it is applied or parked. Else it is refused, and the
// publisher, which has it still, waits before it sends it again; nothing is tried again
// here, so nothing spins.
package consumer
