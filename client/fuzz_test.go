package client_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"verbatim.internal/client"
	"verbatim.internal/client/internal/hubtest"
)

var (
	identifierPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}\z`)
	uuidPattern       = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\z`)
)

// FuzzRules says the rules once more, by the letter.
func FuzzRules(f *testing.F) {
	for _, s := range []string{"visible\ttext\r\n", "\u2003\ufeff", "a\xed\xa0\x80", "\x7f", "event-1", "-", "123E4567-e89b-42d3-a456-426614174001", "😀"} {
		f.Add(s, uint16(3))
	}
	f.Fuzz(func(t *testing.T, s string, limit uint16) {
		text := utf8.ValidString(s) && len(utf16.Encode([]rune(s))) <= int(limit)
		blank := true
		for _, r := range s {
			if r < 0x20 && r != '\t' && r != '\n' && r != '\r' || r == 0x7f {
				text = false
			}
			if !strings.ContainsRune("\t\n\v\f\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff", r) && (r < 0x2000 || r > 0x200a) {
				blank = false
			}
		}
		require.Equal(t, text && !blank, client.IsText(s, int(limit)))
		require.Equal(t, identifierPattern.MatchString(s), client.IsIdentifier(s))
		lower := strings.ToLower(s)
		got, ok := client.ParseUUID(s)
		require.Equal(t, uuidPattern.MatchString(lower) && len(s) == 36, ok)
		if ok {
			require.Equal(t, lower, got)
		}
	})
}

// inMemory is a way to a hub without a network, on which appends are answered by hand.
type inMemory struct {
	hub    http.Handler
	answer func() *http.Response
}

func (m *inMemory) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/events") {
		return m.answer(), nil
	}
	w := httptest.NewRecorder()
	m.hub.ServeHTTP(w, r)
	return w.Result(), nil
}

// FuzzAnswer lets anything answer an append: nothing but an acknowledgement of this archive
// that covers the batch is taken for one, and nothing is lost whatever comes.
func FuzzAnswer(f *testing.F) {
	hub := hubtest.Start()
	f.Cleanup(hub.Close)
	network := &inMemory{hub: hub}
	address, err := client.NewHub(hub.URL, client.WithHTTPClient(&http.Client{Transport: network}), client.WithBackoff(1, 1))
	require.NoError(f, err)
	spool, err := client.OpenHooked(filepath.Join(f.TempDir(), "spool"), address, client.Hooks{NoSync: true})
	require.NoError(f, err)
	f.Cleanup(func() { _ = spool.Close() })
	session, err := spool.AddSession(f.Context(), tokensOf(hub.AddSession("erp-demo", "orders")))
	require.NoError(f, err)
	const ack = `{"schema":"bailing.agent-conversation-audit-ack.v1","conversation_id":"423e4567-e89b-42d3-a456-000000000002","last_sequence":`
	for _, last := range []string{"2", "4", "3.0", "-1", "null", "3"} {
		f.Add(200, ack+last+"}", "")
	}
	f.Add(409, `{"error":"conversation_audit_conflict","message":"x"}`, "")
	f.Add(503, `{"error":"conversation_audit_unavailable"}`, "1")
	f.Add(404, "", "Mon, 02 Jan 2040 15:04:05 GMT")
	f.Fuzz(func(t *testing.T, code int, body, retryAfter string) {
		if code < 200 || code > 599 || code == http.StatusUnauthorized {
			return
		}
		a, err := spool.OpenArchive(client.ArchiveSpec{ConversationID: "c", Route: "orders", Members: []client.Member{{Session: session}}})
		require.NoError(t, err)
		if status(t, a).LastSequence == 0 {
			mustAppend(t, a, turn("turn-1", 3)...)
		}
		require.NoError(t, a.Resume())
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		network.answer = func() *http.Response {
			cancel() // there is no second answer
			return &http.Response{StatusCode: code, Header: http.Header{"Retry-After": {retryAfter}}, Body: io.NopCloser(strings.NewReader(body))}
		}
		err = a.Sync(ctx)
		st := status(t, a)
		require.Len(t, stored(t, a), 3)
		require.Equal(t, err == nil, st.Archived())
		if err == nil {
			require.Equal(t, 3, st.Acknowledged)
			var taken struct {
				Schema string `json:"schema"`
				Last   int    `json:"last_sequence"`
			}
			require.NoError(t, json.Unmarshal([]byte(body), &taken))
			require.Equal(t, "bailing.agent-conversation-audit-ack.v1", taken.Schema)
			require.Equal(t, 3, taken.Last)
			require.NoError(t, a.Forget()) // the next one is another archive, which those answers do not name
		}
	})
}
