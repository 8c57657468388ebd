// Package trace rebuilds a run from stored facts: one audit record per event, in
// the FROZEN v1 form, and one line per record for a person.
//
// It answers who did what when, with which model, how many tool calls and whose
// approval, and with what result. The facts are metadata only; the types here
// have no place for content, for a secret or for a reference to one.
//
// # One event, one record
//
// An [Assembler] turns an event and its ordinal into its [Record] and keeps
// nothing, so that a run may be read in any batches, from any position, by any
// number of readers: the same facts give the same records. [AppendJSON] gives
// them the same bytes, in the frozen key order. [Build] and [Replay] are both
// for a run that fits in memory.
//
// # Unknown is null
//
// What no fact says is nil in a record and null in its JSON, inside actor,
// approval and lineage too: an approval without a decision is undecided. Nothing
// is ever inferred from another fact: the event says who acted, the task says
// under which role and with which model.
package trace
