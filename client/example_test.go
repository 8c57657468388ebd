package client_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"verbatim.internal/client"
	"verbatim.internal/client/internal/hubtest"
)

// exampleSpool starts a hub to play with, and opens a spool of it in a new directory.
func exampleSpool() (hub *hubtest.Hub, spool *client.Spool, end func()) {
	hub = hubtest.Start()
	dir, err := os.MkdirTemp("", "verbatim-example-")
	if err != nil {
		panic(err)
	}
	address, err := client.NewHub(hub.URL)
	if err != nil {
		panic(err)
	}
	spool, err = client.OpenSpool(filepath.Join(dir, "spool"), address)
	if err != nil {
		panic(err)
	}
	return hub, spool, func() {
		_ = spool.Close()
		_ = os.RemoveAll(dir)
		hub.Close()
	}
}

// The shortest way from nothing to an archived conversation.
func Example() {
	_, spool, end := exampleSpool()
	defer end()
	ctx := context.Background()

	session, err := spool.Authorize(ctx, client.Authorization{
		ClientAppID: "shop", Routes: []string{"orders"}, DeviceLabel: "till 1", OpenURL: browse,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	archive, err := spool.OpenArchive(client.ArchiveSpec{
		ConversationID: "conversation-1", Route: "orders", Members: []client.Member{{Session: session}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	// When Append returns, the events are on the disk. The hub gets them by Sync, or by Run
	// in the background.
	_, err = archive.Append(
		client.StartTurn("turn-1"),
		client.UserSaid("turn-1", "Where is my order?"),
		client.AssistantSaid("turn-1", "It arrives tomorrow."),
		client.EndTurn("turn-1", client.Completed),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	status, _ := archive.Status()
	fmt.Println("on disk:", status.LastSequence, "acknowledged:", status.Acknowledged, "archived:", status.Archived())
	if err := archive.Sync(ctx); err != nil {
		fmt.Println(err)
		return
	}
	status, _ = archive.Status()
	fmt.Println("on disk:", status.LastSequence, "acknowledged:", status.Acknowledged, "archived:", status.Archived())
	// Output:
	// on disk: 4 acknowledged: 0 archived: false
	// on disk: 4 acknowledged: 4 archived: true
}

// A conversation about two systems: each has a client, a route and a session of its own,
// and each session confirms for itself. The first member writes.
func ExampleSpool_OpenArchive_twoSystems() {
	hub, spool, end := exampleSpool()
	defer end()
	ctx := context.Background()
	crm, erp := hub.AddSession("crm-demo", "customers"), hub.AddSession("erp-demo", "orders")
	var members []client.Member
	for _, grant := range []hubtest.Grant{erp, crm} {
		session, err := spool.AddSession(ctx, client.Tokens{
			SessionID: grant.SessionID, ClientAppID: grant.ClientAppID,
			AccessToken: client.NewToken(grant.Access), RefreshToken: client.NewToken(grant.Refresh),
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		members = append(members, client.Member{Session: session, Label: grant.ClientAppID})
	}
	members[0].Route, members[1].Route = "orders", "customers"
	archive, err := spool.OpenArchive(client.ArchiveSpec{ConversationID: "conversation-1", Members: members})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(archive.Sync(ctx))
	status, _ := archive.Status()
	fmt.Println(status.State)
	// Output:
	// <nil>
	// ready
}

// A run belongs to a turn, and is linked to it in the archive.
func ExampleSession_OpenTurn() {
	hub, spool, end := exampleSpool()
	defer end()
	ctx := context.Background()
	grant := hub.AddSession("shop", "orders")
	session, err := spool.AddSession(ctx, client.Tokens{
		SessionID: grant.SessionID, ClientAppID: grant.ClientAppID, AccessToken: client.NewToken(grant.Access),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	archive, err := spool.OpenArchive(client.ArchiveSpec{
		ConversationID: "conversation-1", Route: "orders", Members: []client.Member{{Session: session}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	run, err := session.OpenTurn(ctx, "orders", client.Turn{
		ConversationID: "conversation-1", TurnID: "turn-1", UserMessageID: "message-1", UserInput: "Where is my order?",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	done, err := session.Complete(ctx, run.RunID, client.Completion{
		AssistantMessageID: "message-2", Status: client.Completed, Content: "It arrives tomorrow.",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	events, err := archive.Append(
		client.StartTurn("turn-1"),
		client.UserSaid("turn-1", "Where is my order?"),
		run.Link(),
		client.AssistantSaid("turn-1", "It arrives tomorrow."),
		client.EndTurn("turn-1", client.Completed),
	)
	fmt.Println(done.Status, len(events), err)
	// Output: completed 5 <nil>
}

// An agent that was killed goes on where its spool ends: with ids of its own it just
// appends again what it may have appended before.
func ExampleArchive_Append_again() {
	hub, spool, end := exampleSpool()
	defer end()
	grant := hub.AddSession("shop", "orders")
	session, err := spool.AddSession(context.Background(), client.Tokens{
		SessionID: grant.SessionID, ClientAppID: grant.ClientAppID, AccessToken: client.NewToken(grant.Access),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	archive, err := spool.OpenArchive(client.ArchiveSpec{
		ConversationID: "conversation-1", Route: "orders", Members: []client.Member{{Session: session}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		events, err := archive.Append(client.StartTurn("turn-1").WithID("start-1"), client.UserSaid("turn-1", "Hello").WithID("user-1"))
		fmt.Println(events[1].ID, events[1].Sequence, err)
	}
	// Output:
	// user-1 2 <nil>
	// user-1 2 <nil>
}

// A host that runs for long lets Run sync in the background and shows what it is told.
func ExampleSpool_Run() {
	hub, spool, end := exampleSpool()
	defer end()
	grant := hub.AddSession("shop", "orders")
	session, err := spool.AddSession(context.Background(), client.Tokens{
		SessionID: grant.SessionID, ClientAppID: grant.ClientAppID, AccessToken: client.NewToken(grant.Access),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	archive, err := spool.OpenArchive(client.ArchiveSpec{
		ConversationID: "conversation-1", Route: "orders", Members: []client.Member{{Session: session}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := archive.Append(client.StartTurn("turn-1"), client.UserSaid("turn-1", "Hello")); err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	err = spool.Run(ctx, func(status client.Status, err error) {
		fmt.Println(status.State, status.Acknowledged, "of", status.LastSequence, err)
		if status.Archived() {
			cancel()
		}
	})
	fmt.Println(err)
	// Output:
	// ready 2 of 2 <nil>
	// context canceled
}

// A hub behind a proxy, or with authorities of its own.
func ExampleNewHub() {
	_, err := client.NewHub("http://hub.example.com")
	fmt.Println(err)
	hub, err := client.NewHub("https://hub.example.com",
		client.WithHTTPClient(&http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment}}),
		client.WithUserAgent("till/7"))
	fmt.Println(hub != nil, err)
	// Output:
	// verbatim: invalid: the hub's address must be https, or http on a loopback address
	// true <nil>
}
