// Package historytest makes the messages that ingest would send about archives, runs, the
// registry and executions, for tests of what receives them.
package historytest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/contracts/archivev1"
	"verbatim.internal/pkg/contracts/cloudevent"
	"verbatim.internal/pkg/contracts/runv1"
)

// Start is when all histories begin.
var Start = time.Date(2026, 3, 4, 5, 6, 7, 123456000, time.UTC)

// ID returns the n-th UUID of a kind of things, both below 65,536.
func ID(kind, n int) string {
	return fmt.Sprintf("%04x%04x-e89b-42d3-a456-426614174000", kind, n)
}

// Kinds of ids that ID is used with here.
const (
	conversationIDs = 0x4000 + iota
	archiveIDs
	sessionIDs
	runIDs
	jobIDs
	changeIDs
	executionIDs
)

// SessionID returns the id of a session.
func SessionID(n int) string { return ID(sessionIDs, n) }

// RunID returns the id of a run.
func RunID(n int) string { return ID(runIDs, n) }

// Archive is one archive's history. Its methods append the message of what they do.
type Archive struct {
	tb      testing.TB
	clock   time.Time
	header  archivev1.Header
	members []archivev1.Member
	events  []archivev1.Event
	version int64
	turn    int
	// Messages are the messages so far, in order.
	Messages []cloudevent.Event
}

// NewArchive creates the n-th archive. The first session is the creator. v2 gives each
// member a binding of its own.
func NewArchive(tb testing.TB, n int, v2 bool, sessions ...string) *Archive {
	tb.Helper()
	a := &Archive{tb: tb, clock: Start.Add(time.Duration(n) * time.Hour)}
	a.header = archivev1.Header{
		ConversationID: ID(conversationIDs, n), ClientArchiveID: ID(archiveIDs, n),
		ClientConversationID: fmt.Sprintf("conv-%d", n), CreatorSessionID: sessions[0],
		ClientAppID: "client-0", RouteKey: "route-0", MembershipVersion: 1, MemberCount: len(sessions), CreatedAt: a.clock,
		State: archivev1.State{State: archivev1.StateEnrolling, ConfirmedCount: 1, UpdatedAt: a.clock},
	}
	if v2 {
		a.header.MembershipVersion = 2
	}
	for i, session := range sessions {
		m := archivev1.Member{SessionID: session, DisplayLabel: fmt.Sprintf("Member <%d>", i)}
		if v2 {
			m.ClientAppID, m.RouteKey, m.ClientName = fmt.Sprintf("client-%d", i), fmt.Sprintf("route-%d", i), fmt.Sprintf("Client & %d", i)
		}
		a.members = append(a.members, m)
	}
	a.freeze(0)
	a.settle()
	send(a, archivev1.Created{Header: a.header, Members: slices.Clone(a.members)})
	return a
}

func (a *Archive) freeze(member int) archivev1.Member {
	m := &a.members[member]
	at := a.clock
	m.ConfirmedAt = &at
	m.Principal = jsontext.Value(fmt.Sprintf(`{"id":"principal-%d","tenant":"st\u00f6re <ö>"}`, member))
	m.OnBehalfOf = fmt.Sprintf("store:%d", member)
	return *m
}

func (a *Archive) settle() {
	if a.header.State.ConfirmedCount == a.header.MemberCount {
		a.header.State.State = archivev1.StateReady
	}
}

func (a *Archive) tick() {
	a.clock = a.clock.Add(1234567 * time.Microsecond)
	a.header.State.UpdatedAt = a.clock
}

// ConversationID returns the archive's id.
func (a *Archive) ConversationID() string { return a.header.ConversationID }

// Ready reports whether all members are confirmed.
func (a *Archive) Ready() bool { return a.header.State.State == archivev1.StateReady }

// Confirm confirms the next member.
func (a *Archive) Confirm() *Archive {
	a.tick()
	s := &a.header.State
	s.ConfirmedCount++
	m := a.freeze(s.ConfirmedCount - 1)
	a.settle()
	send(a, archivev1.MemberConfirmed{State: *s, Member: m})
	return a
}

// Append appends one whole turn with a user's message for each text.
func (a *Archive) Append(texts ...string) *Archive { return a.appendTurn(nil, texts) }

// Link appends one whole turn that links a run of the creator's.
func (a *Archive) Link(run runv1.Run) *Archive { return a.appendTurn(&run, nil) }

func (a *Archive) appendTurn(run *runv1.Run, texts []string) *Archive {
	a.tick()
	a.turn++
	s := &a.header.State
	s.TurnCount++
	var events []archivev1.Event
	add := func(e archivev1.Event) {
		s.LastSequence++
		e.Sequence, e.EventID = s.LastSequence, fmt.Sprintf("event-%d", s.LastSequence)
		e.ClientTurnID, e.CreatedAt = fmt.Sprintf("turn-%d", a.turn), a.clock
		events = append(events, e)
	}
	add(archivev1.Event{Kind: archivev1.KindTurnStart})
	for _, text := range texts {
		s.MessageCount++
		s.TextBytes += int64(len(text))
		add(archivev1.Event{Kind: archivev1.KindUserMessage, Content: text})
	}
	if run != nil {
		add(archivev1.Event{Kind: archivev1.KindRunLink, RunID: run.RunID, MemberSessionID: run.SessionID, ThreadID: run.ThreadID})
	}
	add(archivev1.Event{Kind: archivev1.KindTurnEnd, Status: archivev1.StatusCompleted})
	completed := archivev1.StatusCompleted
	s.LastTurnStatus = &completed
	a.events = append(a.events, events...)
	send(a, archivev1.EventsAppended{State: *s, Events: events})
	return a
}

// Snapshot returns the parts of a snapshot of the archive as it is, with at most
// eventsPerPart events each. It is no part of Messages.
func (a *Archive) Snapshot(eventsPerPart int) []cloudevent.Event {
	a.tb.Helper()
	return a.snapshot(eventsPerPart, false)
}

// Rebuild returns a Snapshot that an operator asked for.
func (a *Archive) Rebuild(eventsPerPart int) []cloudevent.Event {
	a.tb.Helper()
	return a.snapshot(eventsPerPart, true)
}

func (a *Archive) snapshot(eventsPerPart int, replace bool) []cloudevent.Event {
	a.tb.Helper()
	var parts []cloudevent.Event
	rest := a.events
	for {
		n := min(eventsPerPart, len(rest))
		part := archivev1.Snapshot{
			Header: a.header, Members: slices.Clone(a.members), Events: slices.Clone(rest[:n]), Last: n == len(rest), Replace: replace,
		}
		data, err := archivev1.Marshal(part)
		require.NoError(a.tb, err)
		parts = append(parts, cloudevent.New(archivev1.StreamKind, a.ConversationID(), a.version, len(parts)+1, archivev1.TypeSnapshot, a.clock, data))
		if rest = rest[n:]; part.Last {
			return parts
		}
	}
}

func send[M archivev1.Message](a *Archive, m M) {
	a.tb.Helper()
	a.version++
	data, err := archivev1.Marshal(m)
	require.NoError(a.tb, err)
	a.Messages = append(a.Messages, cloudevent.New(archivev1.StreamKind, a.ConversationID(), a.version, 0, m.Type(), a.clock, data))
}

// Broken returns the event with data that is not of its type.
func Broken(e cloudevent.Event) cloudevent.Event {
	e.Data = jsontext.Value(`{"transcript":"secret words"}`)
	return e
}
