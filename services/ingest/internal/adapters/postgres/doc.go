// Package postgres keeps ingest's archives, registry and outbox in PostgreSQL.
//
// An append costs two round trips, however many events it has: one that begins,
// takes the locks and reads everything the rules ask for, one that writes events,
// header and outbox message in a single statement and commits. So does what agents
// write about their runs; a conversation's first turn makes its thread in between.
// The locks are statements of their own and the reads come after them: a statement
// that waited for a lock still sees the tables as they were when it started.
//
// Lock order: clients by key, routes by key (advisory, shared; the registry's
// triggers take the exclusive side), the creation's key or the archive's row, the
// turns of a conversation (advisory) or the run's row, run links by run id, jobs by
// id. The refresh tokens of a session (advisory) come before its client. What changes
// the registry takes a lock of its own before all, so that such changes are one after
// the other.
package postgres
