// Package archive holds the rules of the conversation archive: creation,
// enrolment, append and limits. It implements the contract "Agent Conversation
// Audit v1" with the Core 0.7.0 member bindings.
//
// # State model
//
// An [Archive] is created with its members frozen ([Creation]) and is Enrolling
// until each has confirmed with its own bearer ([Archive.Confirm]); then it is
// Ready, for good. Only a Ready archive takes events ([Archive.Append]), only
// from its creator, and events never change once they are stored.
//
// # Purity
//
// Nothing here does I/O, reads a clock or draws a random number. A caller reads
// the facts under the archive's lock, asks the rules, and stores the outcome in
// the same transaction; a refused request leaves the given state untouched.
// Every refusal is a [*refusal.Error].
package archive
