// Package readmodel is the projection's pure core: it turns messages of ingest and the
// heads of their streams into the changes that one transaction makes.
//
// A stream is in one of these states:
//
//	flowing   version 0, 1, 2 … applied, nothing parked. The message applied+1 is
//	          applied, one at or below applied is skipped, a later one is a gap.
//	parked    a message could never be applied. It and all later messages of the stream
//	          are kept, in order, until a replay applies them or a snapshot replaces them.
//
// A snapshot replaces a stream in any state, whatever its version. Its parts may be
// applied any number of times; the last one makes the stream flow again from its version.
//
// Nothing here does I/O or knows the time. A crash is the business of whoever runs the
// transaction: all changes of a plan are made, or none.
package readmodel
