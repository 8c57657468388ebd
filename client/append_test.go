package client_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"verbatim.internal/client"
)

const runID = "223e4567-e89b-42d3-a456-426614174001"

func TestWhatIsAppendedStays(t *testing.T) {
	t.Parallel()
	b := setup(t, client.Hooks{})
	a := b.alone(t)
	first := mustAppend(t, a, client.StartTurn("turn-1"), client.UserSaid("turn-1", "Hello\r\n\tWörld 👩‍👧 <&>\u2028").WithID("own-1"))
	require.Equal(t, 1, first[0].Sequence)
	require.NotEmpty(t, first[0].ID)
	require.Equal(t, "own-1", first[1].ID)
	b.reopen(t)
	again, err := b.spool.Archive(a.ID())
	require.NoError(t, err)
	second := mustAppend(t, again, client.EndTurn("turn-1", client.Cancelled))
	require.Equal(t, append(first, second...), stored(t, again))
	page, err := again.Events(1, 1)
	require.NoError(t, err)
	require.Equal(t, first[1:], page)
	st := status(t, again)
	require.Equal(t, client.Status{ID: a.ID(), ConversationID: "conversation-1", State: client.Pending, LastSequence: 3}, st)
	require.False(t, st.Archived())
}

func TestARepeatedAppendIsStoredOnce(t *testing.T) {
	t.Parallel()
	b := setup(t, client.Hooks{})
	a := b.alone(t)
	events := []client.Event{client.StartTurn("turn-1").WithID("a"), client.UserSaid("turn-1", "one").WithID("b")}
	first := mustAppend(t, a, events...)
	require.Equal(t, first, mustAppend(t, a, events...))
	more := mustAppend(t, a, events[1], client.UserSaid("turn-1", "two").WithID("c"))
	require.Equal(t, []int{2, 3}, []int{more[0].Sequence, more[1].Sequence})
	for name, bad := range map[string][]client.Event{
		"another text":     {client.UserSaid("turn-1", "other").WithID("b")},
		"another kind":     {client.AssistantSaid("turn-1", "one").WithID("b")},
		"new before old":   {client.UserSaid("turn-1", "three").WithID("d"), events[1]},
		"old out of order": {events[1], events[0]},
		"old twice":        {events[1], events[1]},
		"new twice":        {client.UserSaid("turn-1", "x").WithID("e"), client.UserSaid("turn-1", "y").WithID("e")},
	} {
		_, err := a.Append(bad...)
		require.ErrorIs(t, err, client.ErrConflict, name)
	}
	require.Len(t, stored(t, a), 3)
}

func TestWhatTheHubWouldRefuseIsNotStored(t *testing.T) {
	t.Parallel()
	b := setup(t, client.Hooks{})
	a := b.archive(t, b.both())
	mustAppend(t, a, client.StartTurn("turn-1"))
	link := client.Event{TurnID: "turn-1", Kind: client.RunLink, RunID: runID, MemberSessionID: b.crm.ID()}
	change := func(f func(*client.Event)) client.Event {
		e := link
		f(&e)
		return e
	}
	for name, e := range map[string]client.Event{
		"no kind":             {TurnID: "turn-1"},
		"no turn":             {Kind: client.TurnStart},
		"bad turn":            client.StartTurn("-"),
		"bad id":              client.UserSaid("turn-1", "x").WithID("a b"),
		"empty":               client.UserSaid("turn-1", ""),
		"blank":               client.UserSaid("turn-1", " \n\u3000"),
		"control":             client.UserSaid("turn-1", "a\x1b[0m"),
		"not UTF-8":           client.UserSaid("turn-1", "a\xff"),
		"too long":            client.UserSaid("turn-1", strings.Repeat("a", client.MaxContentUnits+1)),
		"too long in UTF-16":  client.AssistantSaid("turn-1", strings.Repeat("😀", client.MaxContentUnits/2)+"a"),
		"no status":           client.EndTurn("turn-1", ""),
		"running":             client.EndTurn("turn-1", "running"),
		"content of an end":   {TurnID: "turn-1", Kind: client.TurnEnd, Status: client.Completed, Content: "x"},
		"status of a message": {TurnID: "turn-1", Kind: client.UserMessage, Status: client.Completed, Content: "x"},
		"run of a start":      {TurnID: "turn-2", Kind: client.TurnStart, RunID: runID},
		"run that is none":    change(func(e *client.Event) { e.RunID = "run" }),
		"member that is none": change(func(e *client.Event) { e.MemberSessionID = "" }),
	} {
		_, err := a.Append(client.UserSaid("turn-1", "before"), e)
		require.ErrorIs(t, err, client.ErrInvalid, name)
	}
	for name, events := range map[string][]client.Event{
		"a second start":         {client.StartTurn("turn-2")},
		"another turn's message": {client.UserSaid("turn-2", "x")},
		"another turn's end":     {client.EndTurn("turn-2", client.Failed)},
		"a message after an end": {client.EndTurn("turn-1", client.Failed), client.UserSaid("turn-1", "x")},
		"a used turn":            {client.EndTurn("turn-1", client.Failed), client.StartTurn("turn-1")},
		"a link before its turn": {change(func(e *client.Event) { e.TurnID = "turn-2" })},
		"a stranger's run":       {change(func(e *client.Event) { e.MemberSessionID = runID })},
		"a run twice":            {link, link},
	} {
		_, err := a.Append(events...)
		require.ErrorIs(t, err, client.ErrConflict, name)
	}
	_, err := a.Append()
	require.ErrorIs(t, err, client.ErrInvalid)
	require.Len(t, stored(t, a), 1)
	// Nothing of what was turned away is left behind: all of it fits.
	mustAppend(t, a, client.EndTurn("turn-1", client.Failed), link, client.StartTurn("turn-2"))
}

func TestRunsAreLinkedWhereTheyBelong(t *testing.T) {
	t.Parallel()
	b := setup(t, client.Hooks{})
	a := b.archive(t, b.both())
	mustAppend(t, a, client.StartTurn("turn-1"))
	open := func(s *client.Session, route, conversation, turn string) client.Event {
		run, err := s.OpenTurn(t.Context(), route, client.Turn{ConversationID: conversation, TurnID: turn, UserMessageID: "m", UserInput: "x"})
		require.NoError(t, err)
		return run.Link()
	}
	for name, link := range map[string]client.Event{
		"another conversation": open(b.erp, "orders", "conversation-2", "turn-1"),
		"another route":        open(b.erp, "returns", "conversation-1", "turn-1"),
		"another turn": func() client.Event {
			e := open(b.erp, "orders", "conversation-1", "turn-2")
			e.TurnID = "turn-1"
			return e
		}(),
	} {
		_, err := a.Append(link)
		require.ErrorIs(t, err, client.ErrConflict, name)
	}
	link := open(b.crm, "customers", "conversation-1", "turn-1")
	mustAppend(t, a, link, open(b.erp, "orders", "conversation-1", "turn-1"))
	other := b.archive(t, client.ArchiveSpec{ConversationID: "conversation-1", Route: "customers", Members: []client.Member{{Session: b.crm}}})
	mustAppend(t, other, client.StartTurn("turn-1"))
	_, err := other.Append(link)
	require.ErrorIs(t, err, client.ErrConflict, "a run is linked once, in whatever archive")
}

func TestAnArchiveHasItsLimits(t *testing.T) {
	t.Parallel()
	b := setup(t, client.Hooks{})
	a := b.alone(t)
	events := make([]client.Event, 0, client.MaxEvents)
	for i := range client.MaxEvents / 2 {
		id := fmt.Sprintf("turn-%d", i)
		events = append(events, client.StartTurn(id), client.EndTurn(id, client.Completed))
	}
	mustAppend(t, a, events...)
	_, err := a.Append(client.StartTurn("one-more"))
	require.ErrorIs(t, err, client.ErrLimit)
	long := b.archive(t, client.ArchiveSpec{ConversationID: "long", Route: "orders", Members: []client.Member{{Session: b.erp}}})
	text := strings.Repeat("€", client.MaxContentUnits)
	events = []client.Event{client.StartTurn("turn-1")}
	for range client.MaxArchiveBytes / len(text) {
		events = append(events, client.UserSaid("turn-1", text))
	}
	rest := strings.Repeat("a", client.MaxArchiveBytes%len(text))
	mustAppend(t, long, append(events, client.UserSaid("turn-1", rest[:64_000]))...)
	_, err = long.Append(client.UserSaid("turn-1", rest[64_000:]+"a"))
	require.ErrorIs(t, err, client.ErrLimit)
	mustAppend(t, long, client.UserSaid("turn-1", rest[64_000:]), client.EndTurn("turn-1", client.Completed))
	mustSync(t, long)
	require.Equal(t, stored(t, long), b.transcript(long.ID()))
	require.Empty(t, b.hub.Refusals())
}
