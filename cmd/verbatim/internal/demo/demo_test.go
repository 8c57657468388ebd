package demo

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/contracts/httpapi"
)

// double stands in for both services: it keeps one archive, and alter changes
// what it gives back.
type double struct {
	mu        sync.Mutex
	confirmed map[string]bool
	events    []httpapi.Event
	appends   int
	happened  []happening
	alter     func(events []httpapi.Event) []httpapi.Event
}

func (d *double) header() httpapi.Header {
	state := "enrolling"
	if len(d.confirmed) == 2 {
		state = "ready"
	}
	return httpapi.Header{ConversationID: "c-1", State: state, MemberCount: 2, ConfirmedCount: len(d.confirmed), LastSequence: len(d.events)}
}

func (d *double) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	answer := func(v any) {
		content, _ := json.Marshal(v)
		_, _ = w.Write(content)
	}
	bearer := r.Header.Get("Authorization")
	switch {
	case strings.HasPrefix(r.URL.Path, executionsPath):
		var body struct {
			Events []happening `json:"events"`
		}
		if err := json.UnmarshalRead(r.Body, &body); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		d.happened = append(d.happened, body.Events...)
		answer(struct{}{})
	case strings.HasPrefix(r.URL.Path, runsPath):
		lines := make([]string, 0, len(d.happened))
		for _, h := range d.happened {
			lines = append(lines, h.OccurredAt+" "+h.EventType)
		}
		answer(httpapi.ReplayPage{Lines: lines})
	case r.URL.Path == archivesPath || strings.HasSuffix(r.URL.Path, "/confirm"):
		d.confirmed[bearer] = true
		answer(httpapi.HeaderAnswer{Header: d.header()})
	case strings.HasSuffix(r.URL.Path, "/events"):
		d.appends++
		var body batch
		if err := json.UnmarshalRead(r.Body, &body); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		for _, e := range body.Events {
			if e.Sequence == len(d.events)+1 {
				d.events = append(d.events, httpapi.Event{
					EventID: e.EventID, Sequence: e.Sequence, ClientTurnID: e.ClientTurnID, Kind: e.Kind,
					Content: &e.Content, Status: &e.Status, RunID: &e.RunID, MemberSessionID: &e.MemberSessionID,
				})
			}
		}
		answer(httpapi.Ack{LastSequence: len(d.events)})
	default:
		after, _ := strconv.Atoi(r.URL.Query().Get("after_sequence"))
		limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
		all := d.events
		if d.alter != nil {
			all = d.alter(append([]httpapi.Event(nil), all...))
		}
		page := all[min(after, len(all)):min(after+limit, len(all))]
		answer(httpapi.Detail{Conversation: d.header(), Events: page, HasMore: after+limit < len(all), NextAfterSequence: int64(after + len(page))})
	}
}

func play(t *testing.T, d *double, color bool) (string, error) {
	t.Helper()
	d.confirmed = map[string]bool{}
	server := httptest.NewServer(d)
	t.Cleanup(server.Close)
	var out bytes.Buffer
	apply := func(context.Context, []byte) error { return nil }
	err := Run(t.Context(), Config{
		Ingest: server.URL, Auditview: server.URL, ApplyRegistry: apply, ApplyAdmins: apply,
		Out: &out, Color: color, Now: time.Now,
	})
	return out.String(), err
}

func TestRunTellsTheStory(t *testing.T) {
	t.Parallel()
	d := &double{}
	out, err := play(t, d, false)
	require.NoError(t, err)
	assert.Equal(t, 4, d.appends, "three batches, one of them twice")
	assert.Len(t, d.events, 13)
	assert.Contains(t, out, "the connection broke before the acknowledgement was read")
	assert.Contains(t, out, "the same batch sent again: acknowledged up to 8")
	assert.Contains(t, out, "the same bytes")
	assert.Contains(t, out, "13 events in 3 pages")
	assert.Contains(t, out, "three spaces at the end···")
	assert.Len(t, d.happened, 13)
	assert.Contains(t, out, " approval.approved\n")
	assert.Contains(t, out, "Ctrl-C stops.")
	assert.NotContains(t, out, "\x1b[")
	colored, err := play(t, &double{}, true)
	require.NoError(t, err)
	assert.Contains(t, colored, "\x1b[32m✓\x1b[0m")
}

func TestRunNoticesEveryChange(t *testing.T) {
	t.Parallel()
	for want, alter := range map[string]func([]httpapi.Event) []httpapi.Event{
		"the demo failed: event 6 was not read back as it was written": func(all []httpapi.Event) []httpapi.Event {
			trimmed := strings.TrimSpace(*all[5].Content)
			all[5].Content = &trimmed
			return all
		},
		"the demo failed: event 7 was not read back as it was written": func(all []httpapi.Event) []httpapi.Event {
			normalized := strings.ReplaceAll(*all[6].Content, "e\u0301", "\u00e9")
			all[6].Content = &normalized
			return all
		},
		"the demo failed: event 5 was not read back as it was written": func(all []httpapi.Event) []httpapi.Event {
			return append(all[:4:4], all[5:]...)
		},
		"the demo failed: only 12 of 13 events were read back": func(all []httpapi.Event) []httpapi.Event {
			return all[:12]
		},
		"the demo failed: 14 events were read back and only 13 were written": func(all []httpapi.Event) []httpapi.Event {
			return append(all, all[0])
		},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			_, err := play(t, &double{alter: alter}, false)
			require.EqualError(t, err, want)
		})
	}
}

func TestRunFailsInOneSentence(t *testing.T) {
	t.Parallel()
	refuse := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		refusal := `{"error":"unauthorized","message":"no\nvalid bearer"}`
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(refusal))
	}))
	t.Cleanup(refuse.Close)
	apply := func(context.Context, []byte) error { return nil }
	c := Config{Ingest: refuse.URL, Auditview: refuse.URL, ApplyRegistry: apply, ApplyAdmins: apply, Out: &bytes.Buffer{}, Now: time.Now}
	err := Run(t.Context(), c)
	require.EqualError(t, err, "the demo failed: POST /agent-api/v1/conversation-audits was answered 401 unauthorized: no valid bearer")
	c.ApplyAdmins = func(context.Context, []byte) error { return errors.New("no database") }
	require.EqualError(t, Run(t.Context(), c), "the demo failed: no database")
}

func TestEveryRunHasItsOwnIdentities(t *testing.T) {
	t.Parallel()
	first, err := newCast(time.Now())
	require.NoError(t, err)
	second, err := newCast(time.Now())
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, c := range []cast{first, second} {
		for _, v := range []string{c.conversation, c.swarm, c.clientToken, c.adminToken, c.members[0].session, c.members[1].session, c.members[0].run, c.members[1].run, c.members[0].token, c.members[1].token} {
			assert.False(t, seen[v])
			seen[v] = true
		}
		assert.Regexp(t, `^bva_[A-Za-z0-9_-]{43}$`, c.adminToken)
		assert.Regexp(t, `^bha_[A-Za-z0-9_-]{43}$`, c.members[0].token)
	}
}

func TestReadable(t *testing.T) {
	t.Parallel()
	assert.Equal(t, []string{"a", "⇥   b··", "␍"}, readable("a\n\tb  \n\r"))
	long := strings.Repeat("word ", 30) + "end"
	for _, line := range readable(long) {
		assert.LessOrEqual(t, len([]rune(line)), wrapAt)
	}
	assert.Equal(t, long, strings.Join(readable(long), " "))
	assert.Equal(t, []string{strings.Repeat("x", 200)}, readable(strings.Repeat("x", 200)))
}

func TestDigestTellsTextsApart(t *testing.T) {
	t.Parallel()
	of := func(texts ...string) summary {
		var all []event
		for _, text := range texts {
			all = append(all, event{Kind: kindUser, Content: text})
		}
		return digest(all)
	}
	assert.NotEqual(t, of("ab", "c").sum, of("a", "bc").sum)
	assert.NotEqual(t, of("a ").sum, of("a").sum)
	assert.Equal(t, 2, of("ab", "c").messages)
	assert.Equal(t, 3, of("ab", "c").bytes)
}
