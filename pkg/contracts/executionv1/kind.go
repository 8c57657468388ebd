// Package executionv1 holds the messages about an execution, version 1: an orchestrated run
// of many sub-agents, told as facts. The id of a stream is the execution's; every call that
// changed something is one version, and a snapshot replaces the whole. Marshal and Unmarshal
// both validate; errors carry no values.
//
// # Facts that a later word replaces
//
// Of a task, an approval or a grant only the last word is stored. A message carries it
// when it is the word of the message's own version, and nothing when it was replaced
// meanwhile: then a later message of the stream has what replaced it. So a message is never
// larger than what was written with it, however late it is sent.
//
// Facts are the canonical JSON of the types of package execution.
package executionv1

// StreamKind is the kind of every execution's stream.
const StreamKind = "execution"

// Types of messages.
const (
	TypeOpened            = "verbatim.execution.opened.v1"
	TypeEventsRecorded    = "verbatim.execution.events_recorded.v1"
	TypeTaskRecorded      = "verbatim.execution.task_recorded.v1"
	TypeApprovalRecorded  = "verbatim.execution.approval_recorded.v1"
	TypeGrantRecorded     = "verbatim.execution.grant_recorded.v1"
	TypeCallbacksRecorded = "verbatim.execution.callbacks_recorded.v1"
	TypeSnapshot          = "verbatim.execution.snapshot.v1"
)
