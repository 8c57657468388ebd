// Package executionv1 is what ingest tells auditview about executions: orchestrated runs
// of many sub-agents. The id of a stream is the execution's; every call that changes
// something is one version.
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
