package archive_test

import (
	"fmt"
	"time"

	"verbatim.internal/pkg/domain/archive"
	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/pkg/domain/refusal"
)

// What a caller sent becomes events, or is refused with the contract's code.
func ExampleNewBatch() {
	text, status := "Compare the two selected stores.", "completed"
	batch, err := archive.NewBatch([]archive.Fields{
		{EventID: "start-1", Sequence: 1, ClientTurnID: "turn-1", Kind: "turn_start"},
		{EventID: "user-1", Sequence: 2, ClientTurnID: "turn-1", Kind: "user_message", Content: &text},
		{EventID: "end-1", Sequence: 3, ClientTurnID: "turn-1", Kind: "turn_end", Status: &status},
	})
	fmt.Println(len(batch), err)

	_, err = archive.NewBatch([]archive.Fields{
		{EventID: "start-1", Sequence: 1, ClientTurnID: "turn-1", Kind: "turn_start", Content: &text},
	})
	fmt.Println(refusal.CodeOf(err))
	// Output:
	// 3 <nil>
	// invalid_request
}

// The facts and the history are read under the archive's lock; what Append
// returns is stored in the same transaction.
func ExampleArchive_Append() {
	now := time.Date(2030, time.January, 2, 3, 4, 5, 0, time.UTC)
	const session = identity.UUID("123e4567-e89b-42d3-a456-426614174001")
	creation, err := archive.NewCreationV1(archive.FieldsV1{
		ClientArchiveID: "323e4567-e89b-42d3-a456-426614174001", ClientConversationID: "conversation-stable-id",
		Route: "orders", MemberSessionIDs: []string{string(session)},
	})
	if err != nil {
		return
	}
	a, err := creation.New("423e4567-e89b-42d3-a456-426614174001", identity.Bearer{SessionID: session, ClientAppID: "crm-demo"}, now)
	if err != nil {
		return
	}
	group := archive.Group{session: {
		Session: &identity.Session{
			ID: session, ClientAppID: "crm-demo", Principal: identity.Principal{ID: "operator-7"},
			AllowedRoutes: []string{"orders"}, RefreshExpiresAt: now.Add(time.Hour),
		},
		Client: &identity.Client{AppID: "crm-demo", AllowedRoutes: []string{"*"}, Enabled: true},
		Route:  &identity.Route{RouteKey: "orders", Enabled: true, AgentAccess: true},
	}}
	if err := a.Enrol(group, now); err != nil {
		return
	}

	batch := []archive.Event{
		{EventID: "start-1", Sequence: 1, ClientTurnID: "turn-1", Kind: archive.TurnStart},
		{EventID: "user-1", Sequence: 2, ClientTurnID: "turn-1", Kind: archive.UserMessage, Content: "Hello."},
	}
	if err := a.MayAppend(session, group, now); err != nil {
		return
	}
	fresh, err := a.Append(batch, archive.History{}, now)
	fmt.Println(len(fresh), "new:", err, a.LastSequence, a.LastTurnStatus)

	// The acknowledgement was lost, so the caller sends the batch again.
	history := archive.History{Stored: map[int]archive.Event{1: fresh[0], 2: fresh[1]}}
	fresh, err = a.Append(batch, history, now)
	fmt.Println(len(fresh), "new:", err, a.LastSequence, a.LastTurnStatus)
	// Output:
	// 2 new: <nil> 2 running
	// 0 new: <nil> 2 running
}
