package kit

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// ArchivesPath is where agents create archives.
const ArchivesPath = "/agent-api/v1/conversation-audits"

// Canary is part of every text that the kit writes into an archive, so that a log
// which holds a text is recognised.
const Canary = "canary-Zq7 visible only to administrators"

// Text returns a text that holds Canary and n.
func Text(n int) string {
	return fmt.Sprintf("%s, text %d: é 原文 👩‍👧\n<b>&amp;</b>", Canary, n)
}

// Creation is the body of a creation, v1 or v2.
type Creation struct {
	Schema               string            `json:"schema,omitempty"`
	ClientArchiveID      string            `json:"client_archive_id"`
	ClientConversationID string            `json:"client_conversation_id"`
	Route                string            `json:"route,omitempty"`
	MemberSessionIDs     []string          `json:"member_session_ids,omitempty"`
	MemberLabels         map[string]string `json:"member_labels,omitempty"`
	Members              []Member          `json:"members,omitempty"`
}

// Member is one member of a v2 creation.
type Member struct {
	SessionID   string `json:"session_id"`
	ClientAppID string `json:"client_app_id"`
	Route       string `json:"route"`
	Label       string `json:"label,omitempty"`
}

// Event is one event, submitted or read back.
type Event struct {
	EventID         string `json:"event_id"`
	Sequence        int    `json:"sequence"`
	ClientTurnID    string `json:"client_turn_id"`
	Kind            string `json:"kind"`
	Content         string `json:"content,omitempty"`
	Status          string `json:"status,omitempty"`
	RunID           string `json:"run_id,omitempty"`
	MemberSessionID string `json:"member_session_id,omitempty"`
	ThreadID        int64  `json:"thread_id,omitempty"`
	CreatedAt       string `json:"created_at,omitempty"`
}

// Header is what a creation, a confirmation and the admin API say of an archive.
type Header struct {
	ConversationID string  `json:"conversation_id"`
	State          string  `json:"state"`
	MemberCount    int     `json:"member_count"`
	ConfirmedCount int     `json:"confirmed_count"`
	LastSequence   int     `json:"last_sequence"`
	MessageCount   int     `json:"message_count"`
	TurnCount      int     `json:"turn_count"`
	LastTurnStatus *string `json:"last_turn_status"`
}

// Detail is a page of the admin API.
type Detail struct {
	Conversation      Header           `json:"conversation"`
	Members           []map[string]any `json:"members"`
	Events            []Event          `json:"events"`
	HasMore           bool             `json:"has_more"`
	NextAfterSequence int              `json:"next_after_sequence"`
}

// UUID returns a random UUID, version 4.
func UUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// NewCreation returns a v1 creation on route "orders" for the members.
func NewCreation(members ...string) Creation {
	id := UUID()
	return Creation{
		ClientArchiveID: id, ClientConversationID: "conversation-" + id, Route: "orders", MemberSessionIDs: members,
	}
}

// SessionID returns the id of NewSession's n-th session.
func SessionID(n int) string { return NewSession(n, "").SessionID }

// Turn returns a whole turn of size events (at least 2) from sequence first on:
// a start, messages that hold Canary, and an end.
func Turn(turn string, first, size int) []Event {
	events := make([]Event, size)
	for i := range events {
		sequence := first + i
		e := Event{EventID: fmt.Sprintf("event-%d", sequence), Sequence: sequence, ClientTurnID: turn}
		switch {
		case i == 0:
			e.Kind = "turn_start"
		case i == size-1:
			e.Kind, e.Status = "turn_end", "completed"
		case i%2 == 1:
			e.Kind, e.Content = "user_message", Text(sequence)
		default:
			e.Kind, e.Content = "assistant_message", Text(sequence)
		}
		events[i] = e
	}
	return events
}

// Create sends a creation with a bearer.
func (d *Deployment) Create(ctx context.Context, bearer string, c Creation) (Response, error) {
	return d.Ingest.Do(ctx, Request{Method: http.MethodPost, Path: ArchivesPath, Bearer: d.Bearer(bearer), Body: JSON(c)})
}

// Confirm confirms a member's own membership.
func (d *Deployment) Confirm(ctx context.Context, bearer, conversationID string) (Response, error) {
	path := ArchivesPath + "/" + conversationID + "/confirm"
	return d.Ingest.Do(ctx, Request{Method: http.MethodPost, Path: path, Bearer: d.Bearer(bearer), Body: []byte("{}")})
}

// Append sends a batch.
func (d *Deployment) Append(ctx context.Context, bearer, conversationID string, events ...Event) (Response, error) {
	body := JSON(map[string][]Event{"events": events})
	path := ArchivesPath + "/" + conversationID + "/events"
	return d.Ingest.Do(ctx, Request{Method: http.MethodPost, Path: path, Bearer: d.Bearer(bearer), Body: body})
}

// AppendUnchecked sends a batch as a busy agent does: the answer is not held
// against the contract, only its status is told.
func (d *Deployment) AppendUnchecked(ctx context.Context, bearer, conversationID string, events ...Event) (int, error) {
	body := JSON(map[string]any{"events": events})
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, d.Ingest.URL+ArchivesPath+"/"+conversationID+"/events", bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Authorization", "Bearer "+d.Bearer(bearer))
	answer, err := d.Ingest.Client.Do(r)
	if err != nil {
		return 0, err
	}
	defer func() { _ = answer.Body.Close() }()
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, err
}

// NewArchive creates an archive, confirms every member (the first one is the
// creator) and returns its id, ready for appends.
func (d *Deployment) NewArchive(t *testing.T, members ...string) string {
	t.Helper()
	return d.Enrol(t, NewCreation(members...), members...)
}

// Enrol creates an archive as the first member and confirms the others.
func (d *Deployment) Enrol(t *testing.T, c Creation, members ...string) string {
	t.Helper()
	answer, err := d.Create(t.Context(), members[0], c)
	require.NoError(t, err)
	var header Header
	answer.Decode(t, http.StatusOK, &header)
	id := header.ConversationID
	for _, member := range members[1:] {
		answer, err := d.Confirm(t.Context(), member, id)
		require.NoError(t, err)
		answer.Decode(t, http.StatusOK, &header)
	}
	require.Equal(t, "ready", header.State)
	return id
}

// MustAppend appends and fails the test unless the batch is stored.
func (d *Deployment) MustAppend(t *testing.T, bearer, conversationID string, events ...Event) {
	t.Helper()
	answer, err := d.Append(t.Context(), bearer, conversationID, events...)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, answer.Status, "body: %s", answer.Body)
}

// Read reads a whole archive through the admin API, page by page, and returns the
// last page's header and all events.
func (d *Deployment) Read(ctx context.Context, conversationID string) (Detail, error) {
	var whole Detail
	for after := 0; ; {
		path := fmt.Sprintf("/admin/api/conversation-audits/%s?limit=200&after_sequence=%d", conversationID, after)
		answer, err := d.Auditview.Do(ctx, Request{Method: http.MethodGet, Path: path, Bearer: Viewer})
		if err != nil {
			return whole, err
		}
		if answer.Status != http.StatusOK {
			return whole, fmt.Errorf("status %d: %s", answer.Status, answer.Code())
		}
		var page Detail
		if err := json.Unmarshal(answer.Body, &page); err != nil {
			return whole, err
		}
		page.Events = append(whole.Events, page.Events...)
		whole, after = page, page.NextAfterSequence
		if !page.HasMore {
			return whole, nil
		}
	}
}

// WaitFor waits until the admin API serves the archive up to the sequence, and
// returns it.
func (d *Deployment) WaitFor(t *testing.T, conversationID string, lastSequence int) Detail {
	t.Helper()
	var detail Detail
	Eventually(t, visibleLimit, func() (err error) {
		detail, err = d.Read(t.Context(), conversationID)
		if err == nil && detail.Conversation.LastSequence < lastSequence {
			err = fmt.Errorf("last sequence is %d, want %d", detail.Conversation.LastSequence, lastSequence)
		}
		return err
	})
	return detail
}

// Submitted strips what the server adds, so that events compare with what was sent.
func Submitted(events []Event) []Event {
	out := make([]Event, len(events))
	for i, e := range events {
		e.CreatedAt, e.ThreadID = "", 0
		out[i] = e
	}
	return out
}
