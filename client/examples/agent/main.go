// Command agent is a small agent: it authorizes itself through the browser, echoes what it
// is told, and archives the conversation. Kill it whenever you like, and start it again.
//
//	go run ./examples/agent -hub http://127.0.0.1:8080 -client shop -route orders
//
// Each line of the input is a turn; an empty line or the input's end ends it.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"verbatim.internal/client"
)

// options are what the command is told.
type options struct{ hub, client, route, spool, conversation string }

func main() {
	var o options
	flag.StringVar(&o.hub, "hub", "http://127.0.0.1:8080", "the hub's address")
	flag.StringVar(&o.client, "client", "shop", "the client to authorize at")
	flag.StringVar(&o.route, "route", "orders", "the route to use")
	flag.StringVar(&o.spool, "spool", "agent.spool", "the file that keeps what must not be lost")
	flag.StringVar(&o.conversation, "conversation", "conversation-1", "the conversation to go on with")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		say("agent: %v", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	hub, err := client.NewHub(o.hub)
	if err != nil {
		return err
	}
	spool, err := client.OpenSpool(o.spool, hub)
	if err != nil {
		return err
	}
	session, err := find(ctx, spool, o)
	if err != nil {
		return errors.Join(err, spool.Close())
	}
	archive, err := spool.OpenArchive(client.ArchiveSpec{
		ConversationID: o.conversation, Route: o.route, Members: []client.Member{{Session: session}},
	})
	if err == nil {
		err = converse(ctx, session, archive, o)
	}
	if err == nil {
		err = archive.Sync(ctx)
	}
	if err == nil {
		say("everything is archived")
	}
	return errors.Join(err, spool.Close())
}

// find returns the session of an earlier start, or asks the person for one.
func find(ctx context.Context, spool *client.Spool, o options) (*client.Session, error) {
	for _, session := range spool.Sessions() {
		if session.ClientAppID() == o.client {
			return session, nil
		}
	}
	return spool.Authorize(ctx, client.Authorization{
		ClientAppID: o.client, Routes: []string{o.route}, DeviceLabel: "the example's terminal",
		OpenURL: func(_ context.Context, page string) error {
			say("open this page: %s", page)
			return nil
		},
	})
}

// converse answers each line in a turn of its own, which is a run of its own.
func converse(ctx context.Context, session *client.Session, archive *client.Archive, o options) error {
	status, err := archive.Status()
	if err != nil {
		return err
	}
	if status.LastSequence > 0 {
		say("going on after event %d, of which %d are acknowledged", status.LastSequence, status.Acknowledged)
	}
	if err := endTurn(archive); err != nil {
		return err
	}
	for in := bufio.NewScanner(os.Stdin); ctx.Err() == nil && in.Scan() && in.Text() != ""; {
		if err := answer(ctx, session, archive, o, in.Text()); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func answer(ctx context.Context, session *client.Session, archive *client.Archive, o options, text string) error {
	status, err := archive.Status()
	if err != nil {
		return err
	}
	turn := fmt.Sprintf("turn-%d", status.LastSequence+1)
	if _, err := archive.Append(client.StartTurn(turn), client.UserSaid(turn, text)); err != nil {
		return err
	}
	run, err := session.OpenTurn(ctx, o.route, client.Turn{
		ConversationID: o.conversation, TurnID: turn, UserMessageID: turn + "-user", UserInput: text,
	})
	if err != nil {
		return err
	}
	reply := "You said: " + text
	say("%s", reply)
	if _, err := archive.Append(run.Link(), client.AssistantSaid(turn, reply), client.EndTurn(turn, client.Completed)); err != nil {
		return err
	}
	_, err = session.Complete(ctx, run.RunID, client.Completion{
		AssistantMessageID: turn + "-assistant", Status: client.Completed, Content: reply,
	})
	if err != nil {
		return err
	}
	return archive.Sync(ctx)
}

// endTurn ends a turn that an earlier start left running.
func endTurn(archive *client.Archive) error {
	status, err := archive.Status()
	if err != nil || status.RunningTurn == "" {
		return err
	}
	_, err = archive.Append(client.EndTurn(status.RunningTurn, client.Failed))
	return err
}

func say(format string, args ...any) { _, _ = fmt.Fprintf(os.Stderr, format+"\n", args...) }
