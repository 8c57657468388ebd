package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"verbatim.internal/client"
	"verbatim.internal/test/integration/internal/kit"
)

// The environment of an agent's process, which is this program once more.
const (
	agentSpool = "VERBATIM_AGENT_SPOOL"
	agentHub   = "VERBATIM_AGENT_HUB"
	agentPair  = "VERBATIM_AGENT_PAIR" // the suffix of its two clients
)

// agentTurns is how many turns an agent's conversation has.
const agentTurns = 2

// lifeLimit bounds the life of an agent that is not killed.
const lifeLimit = 2 * time.Minute

// beAgent is an agent with a session at each of two systems. It knows nothing but its
// spool: after a kill it does all of it again, with the same identifiers.
func beAgent() int {
	ctx, cancel := context.WithTimeout(context.Background(), lifeLimit)
	defer cancel()
	if err := live(ctx, os.Getenv(agentHub), os.Getenv(agentSpool), os.Getenv(agentPair)); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func live(ctx context.Context, url, path, pair string) error {
	hub, err := client.NewHub(url, client.WithBackoff(time.Millisecond, 20*time.Millisecond))
	if err != nil {
		return err
	}
	spool, err := client.OpenSpool(path, hub)
	if err != nil {
		return err
	}
	erp, err := signIn(ctx, spool, "erp-"+pair, "orders")
	if err != nil {
		return err
	}
	crm, err := signIn(ctx, spool, "crm-"+pair, "customers")
	if err != nil {
		return err
	}
	archive, err := spool.OpenArchive(client.ArchiveSpec{ConversationID: "conversation-" + pair, Members: []client.Member{
		{Session: erp, Route: "orders", Label: "ERP account"}, {Session: crm, Route: "customers"},
	}})
	if err != nil {
		return err
	}
	for n := range agentTurns {
		if err := converse(ctx, archive, erp, crm, "conversation-"+pair, fmt.Sprintf("turn-%d", n)); err != nil {
			return err
		}
	}
	return spool.Close()
}

// converse has one turn: what is said, a run at each system, and its end.
func converse(ctx context.Context, archive *client.Archive, erp, crm *client.Session, conversation, turn string) error {
	if _, err := archive.Append(client.StartTurn(turn).WithID(turn+":start"), client.UserSaid(turn, kit.Text(1)).WithID(turn+":user")); err != nil {
		return err
	}
	for _, s := range []struct {
		*client.Session
		route string
	}{{erp, "orders"}, {crm, "customers"}} {
		run, err := s.OpenTurn(ctx, s.route, client.Turn{
			ConversationID: conversation, TurnID: turn, UserMessageID: turn + ":user", UserInput: kit.Text(1),
		})
		if err != nil {
			return err
		}
		if _, err := archive.Append(run.Link().WithID(turn + ":" + s.route)); err != nil {
			return err
		}
		_, err = s.RecordTrace(ctx, run.RunID, client.TraceEvent{
			EventID: "called", Event: "tool.called", OccurredAt: time.Date(2026, 6, 8, 9, 0, 0, 0, time.UTC), Metadata: map[string]any{"tool": "search", "attempt": 1},
		})
		if err != nil {
			return err
		}
		_, err = s.Complete(ctx, run.RunID, client.Completion{AssistantMessageID: turn + ":answer", Status: client.Completed, Content: kit.Text(2)})
		if err != nil {
			return err
		}
	}
	_, err := archive.Append(
		client.AssistantSaid(turn, kit.Text(2)).WithID(turn+":answer"), client.EndTurn(turn, client.Completed).WithID(turn+":end"),
	)
	return errors.Join(err, archive.Sync(ctx))
}

// signIn returns the session of an earlier life, or asks the person for one.
func signIn(ctx context.Context, spool *client.Spool, clientAppID, route string) (*client.Session, error) {
	for _, session := range spool.Sessions() {
		if session.ClientAppID() == clientAppID {
			return session, nil
		}
	}
	return spool.Authorize(ctx, client.Authorization{
		ClientAppID: clientAppID, Routes: []string{route}, DeviceLabel: "a device", OpenURL: browse,
	})
}

// browse is the person's browser: it follows the page's redirect.
func browse(ctx context.Context, url string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}
