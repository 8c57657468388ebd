package postgres

import (
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"verbatim.internal/pkg/contracts/archivev1"
	"verbatim.internal/pkg/domain/archive"
	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/pkg/platform/transport"
	"verbatim.internal/services/ingest/internal/adapters/outbox"
)

// InsertArchive implements [app.Tx].
func (t *transaction) InsertArchive(a *archive.Archive) error {
	args := []any{
		a.ConversationID, a.ClientArchiveID, a.ClientConversationID, a.CreatorSessionID,
		a.Binding.ClientAppID, a.Binding.RouteKey, a.RequestHash[:], string(a.State), len(a.Members),
		a.ConfirmedCount, a.CreatedAt,
	}
	columns := newMemberArrays(a)
	memberArgs := columns.args(a.ConversationID)
	if t.sql == statements058 {
		args = append(args, a.MembershipVersion)
		memberArgs = append(memberArgs, columns.clients, columns.routes, columns.names)
	}
	t.writes.Queue(t.sql.insertArchive, args...)
	t.writes.Queue(t.sql.insertMembers, memberArgs...)
	return t.queueOutbox(a, archivev1.TypeCreated, outbox.ArchivePayload{State: stateOf(a)})
}

// memberArrays are an archive's members, a column an array.
type memberArrays struct {
	sessions                                               []string
	labels, principals, onBehalfOf, clients, routes, names []*string
	confirmedAt                                            []*time.Time
	hashes                                                 [][]byte
}

func newMemberArrays(a *archive.Archive) memberArrays {
	var c memberArrays
	for _, m := range a.Members {
		var confirmedAt *time.Time
		var principal, onBehalfOf *string
		var hash []byte
		if m.Confirmation != nil {
			confirmedAt, principal, onBehalfOf = &m.Confirmation.At, principalText(m.Confirmation), &m.Confirmation.OnBehalfOf
			hash = m.Confirmation.Snapshot[:]
		}
		var client, route, name *string
		if a.MembershipVersion == archive.MemberBindings {
			client, route, name = &m.Binding.ClientAppID, &m.Binding.RouteKey, &m.ClientName
		}
		c.sessions = append(c.sessions, string(m.SessionID))
		c.labels = append(c.labels, notEmpty(m.Label))
		c.confirmedAt = append(c.confirmedAt, confirmedAt)
		c.principals = append(c.principals, principal)
		c.onBehalfOf = append(c.onBehalfOf, onBehalfOf)
		c.hashes = append(c.hashes, hash)
		c.clients, c.routes, c.names = append(c.clients, client), append(c.routes, route), append(c.names, name)
	}
	return c
}

func (c memberArrays) args(id identity.UUID) []any {
	return []any{id, c.sessions, c.labels, c.confirmedAt, c.principals, c.onBehalfOf, c.hashes}
}

// UpdateConfirmation implements [app.Tx].
func (t *transaction) UpdateConfirmation(a *archive.Archive, member identity.UUID) error {
	c := a.Member(member).Confirmation
	t.writes.Queue(updateMember, a.ConversationID, member, c.At, *principalText(c), c.OnBehalfOf, c.Snapshot[:])
	t.writes.Queue(updateEnrolment, a.ConversationID, string(a.State), a.ConfirmedCount, a.StreamVersion, a.UpdatedAt)
	return t.queueOutbox(a, archivev1.TypeMemberConfirmed, outbox.ArchivePayload{State: stateOf(a), Member: string(member)})
}

// InsertEvents implements [app.Tx].
func (t *transaction) InsertEvents(a *archive.Archive, events []archive.Event) error {
	if t.recalled != nil {
		t.recalled.archive = *a
	}
	if slices.ContainsFunc(events, func(e archive.Event) bool { return e.Kind == archive.RunLink }) {
		return t.insertEventsWithLinks(a, events)
	}
	args, err := t.eventArgs(a, events)
	if err != nil {
		return err
	}
	t.writes.Queue(insertEvents, args...)
	return nil
}

// eventArgs are the arguments of insertEventsIf. Its partition is woken after the commit.
func (t *transaction) eventArgs(a *archive.Archive, events []archive.Event) ([]any, error) {
	n := len(events)
	columns := make(pgtype.FlatArray[string], 5*n) // one allocation for the five
	ids, turns, kinds, contents, statuses := columns[:n], columns[n:2*n], columns[2*n:3*n], columns[3*n:4*n], columns[4*n:]
	textBytes := 0
	for i := range events {
		e := &events[i]
		ids[i], turns[i], kinds[i], contents[i], statuses[i] = e.EventID, e.ClientTurnID, string(e.Kind), e.Content, string(e.Status)
		textBytes += len(e.Content)
	}
	payload, err := outbox.ArchivePayload{State: stateOf(a), FirstSequence: events[0].Sequence}.Marshal()
	if err != nil {
		return nil, fmt.Errorf("write the outbox message: %w", err)
	}
	id := string(a.ConversationID)
	partition := transport.Partition(id)
	t.partitions = append(t.partitions, partition)
	return []any{
		id, events[0].Sequence, ids, turns, kinds, contents, statuses, a.UpdatedAt,
		a.LastSequence, a.MessageCount, a.TurnCount, notEmpty(string(a.LastTurnStatus)), notEmpty(a.CurrentTurnID),
		a.TextBytes, a.StreamVersion, partition, archivev1.StreamKind, archivev1.TypeEventsAppended, payload, textBytes, t.trace,
	}, nil
}

func (t *transaction) insertEventsWithLinks(a *archive.Archive, events []archive.Event) error {
	n := len(events)
	sequences := make([]int32, n)
	ids, turns, kinds := make([]string, n), make([]string, n), make([]string, n)
	contents, statuses, runs, members := make([]*string, n), make([]*string, n), make([]*string, n), make([]*string, n)
	threads := make([]*int64, n)
	textBytes := 0
	for i := range events {
		e := &events[i]
		sequences[i] = int32(e.Sequence) //nolint:gosec // at most archive.MaxEvents
		ids[i], turns[i], kinds[i] = e.EventID, e.ClientTurnID, string(e.Kind)
		contents[i], statuses[i] = notEmpty(e.Content), notEmpty(string(e.Status))
		textBytes += len(e.Content)
		if e.Kind == archive.RunLink {
			run, member := string(e.RunID), string(e.MemberSessionID)
			runs[i], members[i], threads[i] = &run, &member, &e.ThreadID
		}
	}
	payload, err := outbox.ArchivePayload{State: stateOf(a), FirstSequence: events[0].Sequence}.Marshal()
	if err != nil {
		return fmt.Errorf("write the outbox message: %w", err)
	}
	partition := transport.Partition(string(a.ConversationID))
	t.writes.Queue(insertEventsWithLinks, a.ConversationID, sequences, ids, turns, kinds, contents, statuses, runs, members, threads, a.UpdatedAt,
		a.LastSequence, a.MessageCount, a.TurnCount, notEmpty(string(a.LastTurnStatus)), notEmpty(a.CurrentTurnID),
		a.TextBytes, a.StreamVersion, partition, archivev1.StreamKind, archivev1.TypeEventsAppended, payload, textBytes, t.trace)
	t.partitions = append(t.partitions, partition)
	return nil
}

func (t *transaction) queueOutbox(a *archive.Archive, messageType string, p outbox.ArchivePayload) error {
	payload, err := p.Marshal()
	if err != nil {
		return fmt.Errorf("write the outbox message: %w", err)
	}
	partition := transport.Partition(string(a.ConversationID))
	t.writes.Queue(insertOutbox, partition, archivev1.StreamKind, a.ConversationID, a.StreamVersion, messageType, payload, membersBytes(a), t.trace, a.UpdatedAt)
	t.partitions = append(t.partitions, partition)
	return nil
}

// membersBytes estimates what the relay reads to send a message about a's members,
// so that its batches stay bounded.
func membersBytes(a *archive.Archive) int {
	const each = 512 // ids, binding and names
	n := 0
	for _, m := range a.Members {
		n += each + len(m.Label)
		if m.Confirmation != nil {
			n += len(*principalText(m.Confirmation)) + len(m.Confirmation.OnBehalfOf)
		}
	}
	return n
}

func stateOf(a *archive.Archive) archivev1.State {
	return archivev1.State{
		State: string(a.State), ConfirmedCount: a.ConfirmedCount, LastSequence: a.LastSequence,
		MessageCount: a.MessageCount, TurnCount: a.TurnCount, LastTurnStatus: notEmpty(string(a.LastTurnStatus)),
		TextBytes: a.TextBytes, UpdatedAt: a.UpdatedAt,
	}
}

func principalText(c *archive.Confirmation) *string {
	b, err := c.Principal.Marshal()
	if err != nil {
		return nil // not reached: a principal that was read or validated is UTF-8
	}
	s := string(b)
	return &s
}

// notEmpty returns nil, a null, for an empty text.
func notEmpty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
