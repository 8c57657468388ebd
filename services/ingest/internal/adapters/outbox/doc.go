// Package outbox takes committed changes out of ingest's database and hands them
// to auditview, at least once and in order within each stream.
//
// # State model
//
// A row of the outbox is waiting until auditview has acknowledged the batch it
// travelled in; then it is deleted. Nothing else is kept about it. The [Reader]
// is a watermill subscriber with one topic a partition; the [Relay] is the
// watermill router that moves its batches to the transport.
//
// # Order
//
// A writer holds its stream's lock when it draws an outbox id, so within a
// stream ids are in commit order. A row of another stream may become visible
// late, with a lower id: that is why rows are deleted by id, never up to one.
//
// # Failure
//
// One replica reads a partition at a time ([Leases], session advisory locks). A
// replica that lost its locks without noticing may send a batch twice: the
// stream versions make that harmless. A batch that is refused or whose answer is
// lost comes again after a growing, jittered pause. After a crash every row that
// was not deleted is sent again. No transaction is open while a batch is on its way.
package outbox
