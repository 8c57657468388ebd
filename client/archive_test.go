package client_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"verbatim.internal/client"
)

func TestTheSameConversationIsTheSameArchive(t *testing.T) {
	t.Parallel()
	b := setup(t, client.Hooks{})
	a := b.archive(t, b.both())
	reversed := b.both()
	reversed.Members[0].Label = "ERP account"
	require.Equal(t, a.ID(), b.archive(t, reversed).ID())
	b.reopen(t)
	again := b.archive(t, b.both())
	require.Equal(t, a.ID(), again.ID())
	for name, change := range map[string]func(*client.ArchiveSpec){
		"another writer":       func(s *client.ArchiveSpec) { s.Members[0], s.Members[1] = s.Members[1], s.Members[0] },
		"another label":        func(s *client.ArchiveSpec) { s.Members[0].Label = "" },
		"another route":        func(s *client.ArchiveSpec) { s.Members[0].Route = "returns" },
		"fewer members":        func(s *client.ArchiveSpec) { s.Members = s.Members[:1] },
		"another conversation": func(s *client.ArchiveSpec) { s.ConversationID = "conversation-2" },
	} {
		spec := b.both()
		change(&spec)
		require.NotEqual(t, a.ID(), b.archive(t, spec).ID(), name)
		spec.ID = a.ID()
		_, err := b.spool.OpenArchive(spec)
		require.ErrorIs(t, err, client.ErrConflict, name)
	}
	own := b.both()
	own.ID = "323E4567-E89B-42D3-A456-426614174001"
	require.Equal(t, "323e4567-e89b-42d3-a456-426614174001", b.archive(t, own).ID())
	require.Equal(t, "323e4567-e89b-42d3-a456-426614174001", b.archive(t, own).ID())
	all, err := b.spool.Archives()
	require.NoError(t, err)
	require.Len(t, all, 7)
	require.Equal(t, a.ID(), all[0].ID)
}

func TestArchivesThatNoHubWouldTake(t *testing.T) {
	t.Parallel()
	b, other := setup(t, client.Hooks{}), setup(t, client.Hooks{})
	_, err := b.erp.Info(t.Context())
	require.NoError(t, err)
	common := client.ArchiveSpec{ConversationID: "c", Route: "orders", Members: []client.Member{{Session: b.erp}}}
	for name, change := range map[string]func(*client.ArchiveSpec){
		"id":                   func(s *client.ArchiveSpec) { s.ID = "a" },
		"conversation":         func(s *client.ArchiveSpec) { s.ConversationID = "" },
		"route":                func(s *client.ArchiveSpec) { s.Route = "auto" },
		"no route":             func(s *client.ArchiveSpec) { s.Route = "" },
		"both routes":          func(s *client.ArchiveSpec) { s.Members[0].Route = "orders" },
		"no members":           func(s *client.ArchiveSpec) { s.Members = nil },
		"65 members":           func(s *client.ArchiveSpec) { s.Members = make([]client.Member, 65) },
		"no session":           func(s *client.ArchiveSpec) { s.Members[0].Session = nil },
		"another hub's":        func(s *client.ArchiveSpec) { s.Members[0].Session = other.erp },
		"twice":                func(s *client.ArchiveSpec) { s.Members = append(s.Members, s.Members[0]) },
		"long label":           func(s *client.ArchiveSpec) { s.Members[0].Label = strings.Repeat("é", 129) },
		"other client":         func(s *client.ArchiveSpec) { s.Members = append(s.Members, client.Member{Session: b.crm}) },
		"a route not allowed":  func(s *client.ArchiveSpec) { s.Route = "customers" },
		"own route not of its": func(s *client.ArchiveSpec) { s.Route, s.Members[0].Route = "", "customers" },
	} {
		spec := common
		spec.Members = append([]client.Member(nil), common.Members...)
		change(&spec)
		_, err := b.spool.OpenArchive(spec)
		require.ErrorIs(t, err, client.ErrInvalid, name)
	}
	all, err := b.spool.Archives()
	require.NoError(t, err)
	require.Empty(t, all)
}

func TestOnlyWhatTheHubHoldsIsForgotten(t *testing.T) {
	t.Parallel()
	b := setup(t, client.Hooks{})
	a := b.alone(t)
	require.ErrorIs(t, a.Forget(), client.ErrNotArchived)
	mustAppend(t, a, turn("turn-1", 3)...)
	require.ErrorIs(t, a.Forget(), client.ErrNotArchived)
	mustSync(t, a)
	mustAppend(t, a, turn("turn-2", 3)...)
	require.ErrorIs(t, a.Forget(), client.ErrNotArchived)
	mustSync(t, a)
	require.NoError(t, a.Forget())
	_, err := a.Append(client.StartTurn("turn-3"))
	require.ErrorIs(t, err, client.ErrNotFound)
	require.ErrorIs(t, a.Sync(t.Context()), client.ErrNotFound)
	_, err = a.Events(0, 1)
	require.ErrorIs(t, err, client.ErrNotFound)
	_, err = b.spool.Archive(a.ID())
	require.ErrorIs(t, err, client.ErrNotFound)
	require.NotEqual(t, a.ID(), b.alone(t).ID())
	require.Len(t, b.transcript(a.ID()), 6)
}
