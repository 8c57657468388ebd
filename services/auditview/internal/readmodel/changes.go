package readmodel

import (
	"verbatim.internal/pkg/contracts/archivev1"
	"verbatim.internal/pkg/contracts/cloudevent"
	"verbatim.internal/pkg/contracts/registryv1"
	"verbatim.internal/pkg/contracts/runv1"
)

// Changes is what one transaction does to the read model, as sets, so that it takes a
// constant number of statements. The sets are made in the order of the fields.
type Changes struct {
	// Replaced are the archives whose content a snapshot replaces: events above
	// KeepEvents, members, run links and parked messages go first, and afterwards the
	// archive must have exactly as many events as its header's last_sequence says.
	Replaced []Replaced
	// Created are headers of archives that must not exist yet.
	Created []archivev1.Header
	// Headers are headers of archives that may exist already.
	Headers []archivev1.Header
	// States are new states of archives that must exist with the sequence Before.
	States []StateChange
	// Members are members of created or replaced archives.
	Members []MemberChange
	// Confirmed are members that must exist.
	Confirmed []MemberChange
	// Events are events that must not exist yet; Restored may.
	Events   []EventChange
	Restored []EventChange
	// Links are run links of Events; their runs must not be linked yet. The links of
	// replaced archives are made from their events.
	Links []EventChange
	// ReplacedRuns are the runs that a snapshot replaces: what is stored of them goes
	// but for trace events up to KeepEvents, and afterwards a run must have exactly the
	// trace events up to LastPosition.
	ReplacedRuns []ReplacedRun
	// Recorded are runs that must not exist yet; Runs may.
	Recorded []runv1.Run
	Runs     []runv1.Run
	// Completed are completions of runs that must exist and must not have one.
	Completed []runv1.Completed
	// Traced are runs that must exist with a trace that ends at Before.
	Traced []TraceChange
	// TraceEvents are events that must not exist yet; RestoredTrace may.
	TraceEvents   []TraceEventChange
	RestoredTrace []TraceEventChange
	// Registry are changes of the registry that must not exist yet; RestoredRegistry may,
	// and each takes the number of another one that has it.
	Registry         []registryv1.Change
	RestoredRegistry []registryv1.Change
	// Executions is what happens to executions.
	Executions ExecutionChanges
	// Versions are the versions that streams have afterwards.
	Versions []StreamVersion
	// Unparked are messages to forget, before Parked are added.
	Unparked []Unparked
	Parked   []Parked
}

// Replaced names an archive that a snapshot replaces.
type Replaced struct {
	ConversationID string
	KeepEvents     int // events above this sequence go
	LastSequence   int // the number of events there must be afterwards
}

// StateChange is a new state of an archive, and the last sequence that it must have had.
type StateChange struct {
	ConversationID string
	Before         int
	State          archivev1.State
}

// MemberChange is a member of an archive.
type MemberChange struct {
	ConversationID string
	Member         archivev1.Member
}

// EventChange is an event of an archive.
type EventChange struct {
	ConversationID string
	Event          archivev1.Event
}

// ReplacedRun is a run as a snapshot has it.
type ReplacedRun struct {
	Run          runv1.Run
	Completion   *runv1.Completed // nil: it runs
	KeepEvents   int              // trace events above this position go
	LastPosition int              // the number of trace events there must be afterwards
}

// TraceChange is where a run's trace ended, and where it ends now.
type TraceChange struct {
	RunID        string
	Before, Last int
}

// TraceEventChange is an event of a run's trace.
type TraceEventChange struct {
	RunID string
	Event runv1.TraceEvent
}

// StreamVersion is the version that a stream has once the changes are made.
type StreamVersion struct {
	Stream  Stream
	Version int64
}

// Unparked names parked messages: one part of a snapshot, or with Part 0 all up to Version.
type Unparked struct {
	Stream  Stream
	Version int64
	Part    int
}

// Parked is a message to keep. Err is nil for one that waits for an earlier message.
type Parked struct {
	Stream  Stream
	Version int64
	Part    int
	Event   cloudevent.Event
	Err     error
}

// Gap is a stream whose next message is missing: everything up to Applied is there.
type Gap struct {
	Stream  Stream
	Applied int64
}

// Summary counts what a plan does with its messages.
type Summary struct{ Applied, Skipped, Parked, Refused int }

// Plan is what to do with a batch.
type Plan struct {
	Changes Changes
	// Gaps are the streams of which messages were refused, in key order.
	Gaps    []Gap
	Summary Summary
}
