package client_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"
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

// FuzzAnswer lets anything answer an append: nothing but an acknowledgement of this archive
// that covers the batch is taken for one.
func FuzzAnswer(f *testing.F) {
	f.Add(200, `{"schema":"bailing.agent-conversation-audit-ack.v1","conversation_id":"423e4567-e89b-42d3-a456-000000000002","last_sequence":3}`, "")
	f.Add(200, `{"schema":"bailing.agent-conversation-audit-ack.v1","conversation_id":"423e4567-e89b-42d3-a456-000000000002","last_sequence":2}`, "")
	f.Add(200, `{"schema":"bailing.agent-conversation-audit-ack.v1","conversation_id":"423e4567-e89b-42d3-a456-000000000002","last_sequence":4}`, "")
	f.Add(409, `{"error":"conversation_audit_conflict","message":"x"}`, "")
	f.Add(503, `{"error":"conversation_audit_unavailable"}`, "1")
	f.Add(404, "", "Mon, 02 Jan 2040 15:04:05 GMT")
	f.Fuzz(func(t *testing.T, code int, body, retryAfter string) {
		if code < 200 || code > 599 || code == http.StatusUnauthorized {
			return
		}
		hub := hubtest.Start()
		defer hub.Close()
		var answers int
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasSuffix(r.URL.Path, "/events") {
				hub.ServeHTTP(w, r)
				return
			}
			answers++
			w.Header().Set("Retry-After", retryAfter)
			w.WriteHeader(code)
			_, _ = w.Write([]byte(body))
		}))
		defer front.Close()
		b := &testBundle{hub: hub, path: t.TempDir() + "/spool", clientHub: newHub(t, front.URL)}
		b.open(t)
		defer func() { _ = b.spool.Close() }()
		b.erp = b.add(t, hub.AddSession("erp-demo", "orders"))
		a := b.alone(t)
		mustAppend(t, a, turn("turn-1", 3)...)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		err := a.Sync(ctx)
		st := status(t, a)
		require.Positive(t, answers)
		require.Len(t, stored(t, a), 3)
		require.Equal(t, err == nil, st.Archived())
		isAck := code/100 == 2 && strings.Contains(body, "ack.v1") && strings.Contains(body, st.HubID) && strings.Contains(body, "3")
		require.True(t, isAck || !st.Archived(), "an answer that is no acknowledgement was taken for one")
	})
}
