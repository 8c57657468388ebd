package client_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"verbatim.internal/client"
	"verbatim.internal/pkg/domain/archive"
	"verbatim.internal/test/integration/internal/kit"
)

// The client stores exactly the events that the service's rules take: none that could
// never be sent, and it turns none away that could.
func TestTheClientsRulesAreTheServices(t *testing.T) {
	t.Parallel()
	hub, err := client.NewHub("https://hub.example.com")
	require.NoError(t, err)
	spool, err := client.OpenSpool(filepath.Join(t.TempDir(), "spool"), hub)
	require.NoError(t, err)
	defer func() { require.NoError(t, spool.Close()) }()
	session := add(t, spool, kit.NewSession(1, "app"))
	a, err := spool.OpenArchive(client.ArchiveSpec{ConversationID: "c", Route: "orders", Members: []client.Member{{Session: session}}})
	require.NoError(t, err)
	for _, e := range candidates() {
		_, err := a.Append(e)
		_, refused := archive.NewBatch([]archive.Fields{fields(e)})
		require.Equal(t, refused != nil, errors.Is(err, client.ErrInvalid), "kind %q, %d bytes: %v, %v", e.Kind, len(e.Content), err, refused)
	}
}

// candidates are events of every kind with every value that is on an edge of the rules.
func candidates() []client.Event {
	identifiers := []string{"a", "Z9", "a_.:-", "-a", ".", "a b", "é", "a\n", strings.Repeat("x", 128), strings.Repeat("x", 129)}
	uuids := []string{kit.UUID(), strings.ToUpper(kit.UUID()), "", "run", "123e4567-e89b-62d3-a456-426614174001", "123e4567-e89b-42d3-c456-426614174001"}
	texts := []string{
		"a", "", " ", "\t\r\n", "a\t\r\nb", "\u200b", "\u3000\ufeff\u2028", "\u0085", "a\x00", "a\x0b", "a\x1f", "a\x7f", "a\x80", "a\xed\xa0\x80", "\ufffd", "😀",
		strings.Repeat("a", 64_000), strings.Repeat("a", 64_001), strings.Repeat("€", 64_000), strings.Repeat("😀", 32_000), strings.Repeat("😀", 32_000) + "a",
	}
	var all []client.Event
	for _, id := range identifiers {
		all = append(all, client.StartTurn(id).WithID("id"), client.StartTurn("turn").WithID(id))
	}
	for _, kind := range []client.Kind{client.TurnStart, client.UserMessage, client.AssistantMessage, client.RunLink, client.TurnEnd, "other", ""} {
		for _, text := range texts {
			all = append(all, client.Event{ID: "id", TurnID: "turn", Kind: kind, Content: text})
		}
		for _, status := range []client.TurnStatus{client.Completed, client.Failed, client.Cancelled, "running", "Completed", ""} {
			all = append(all, client.Event{ID: "id", TurnID: "turn", Kind: kind, Status: status})
		}
		for _, run := range uuids {
			for _, member := range uuids {
				all = append(all, client.Event{ID: "id", TurnID: "turn", Kind: kind, RunID: run, MemberSessionID: member})
			}
		}
	}
	return all
}

// fields is the event as it would be sent: what is empty is absent.
func fields(e client.Event) archive.Fields {
	f := archive.Fields{EventID: e.ID, Sequence: 1, ClientTurnID: e.TurnID, Kind: string(e.Kind)}
	for to, value := range map[**string]string{
		&f.Content: e.Content, &f.Status: string(e.Status), &f.RunID: e.RunID, &f.MemberSessionID: e.MemberSessionID,
	} {
		if value != "" {
			*to = &value
		}
	}
	return f
}
