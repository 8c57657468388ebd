package historytest

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/contracts/cloudevent"
	"verbatim.internal/pkg/contracts/registryv1"
)

// NewChange returns the n-th change of the registry, n from 1 up: each second one created
// a client, the others changed a route.
func NewChange(n int) registryv1.Change {
	c := registryv1.Change{
		ChangeID: ID(changeIDs, n), Number: int64(n), Kind: registryv1.KindClient, Name: fmt.Sprintf("client-%d", n),
		Action: registryv1.ActionCreated, Fields: []string{}, Changes: []registryv1.FieldChange{},
		Actor: registryv1.Actor{Kind: registryv1.ActorOperator}, RecordedAt: Start.Add(time.Duration(n) * time.Second),
	}
	if n%2 == 0 {
		c.Kind, c.Name, c.Action = registryv1.KindRoute, "route-0", registryv1.ActionUpdated
		c.Fields = []string{"instructions", "name"}
		c.Changes = []registryv1.FieldChange{
			{Field: "name", From: jsontext.Value(`null`), To: jsontext.Value(fmt.Sprintf(`"R\u00f6ute <%d>"`, n))},
		}
		c.Actor = registryv1.Actor{Kind: registryv1.ActorController, Name: "console"}
	}
	return c
}

// ChangeMessage returns the message about a change of the registry: with part 1 its snapshot.
func ChangeMessage(tb testing.TB, c registryv1.Change, part int) cloudevent.Event {
	tb.Helper()
	data, err := registryv1.Marshal(c)
	require.NoError(tb, err)
	eventType := registryv1.TypeRecorded
	if part > 0 {
		eventType = registryv1.TypeSnapshot
	}
	return cloudevent.New(registryv1.StreamKind, c.ChangeID, 1, part, eventType, c.RecordedAt, data)
}
