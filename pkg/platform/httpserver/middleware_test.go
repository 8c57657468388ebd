package httpserver_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/platform/httpserver"
)

const said = "what-the-user-said"

// answer runs a handler behind the middleware, in its documented order.
func answer(t *testing.T, req *http.Request, h http.HandlerFunc) (*httptest.ResponseRecorder, map[string]any, string) {
	t.Helper()
	var out bytes.Buffer
	log := slog.New(slog.NewJSONHandler(&out, nil))
	rec := httptest.NewRecorder()
	chain := httpserver.RequestID(httpserver.AccessLog(log)(httpserver.Recover(log, nil)(h)))
	func() {
		defer func() {
			if value := recover(); value != nil {
				require.Equal(t, http.ErrAbortHandler, value)
			}
		}()
		chain.ServeHTTP(rec, req)
	}()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	var line map[string]any
	require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &line))
	return rec, line, out.String()
}

func request(t *testing.T, method string) *http.Request {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), method, "/threads/"+said+"?text="+said, strings.NewReader(said))
	req.Header.Set("Authorization", "Bearer "+said)
	req.Header.Set("User-Agent", said)
	return req
}

func TestRequestIDIsTakenOrMade(t *testing.T) {
	t.Parallel()
	for given, taken := range map[string]bool{
		"abc-1.2_X": true, strings.Repeat("a", 64): true, strings.Repeat("a", 65): false, "": false, "a b": false, "ü": false, "a\"b": false,
		"bha_" + strings.Repeat("a", 43): false, // it would be logged
	} {
		req := request(t, http.MethodGet)
		req.Header.Set("X-Request-Id", given)
		var inside string
		rec, line, _ := answer(t, req, func(_ http.ResponseWriter, r *http.Request) { inside = httpserver.RequestIDFrom(r.Context()) })
		require.Equal(t, inside, rec.Header().Get("X-Request-Id"))
		require.Equal(t, inside, line["request_id"])
		require.True(t, httpserver.ValidRequestID(inside))
		require.Equal(t, taken, inside == given, given)
	}
	require.Empty(t, httpserver.RequestIDFrom(t.Context()))
}

func TestAccessLogHoldsTheRouteAndNoValue(t *testing.T) {
	t.Parallel()
	rec, line, all := answer(t, request(t, http.MethodPost), func(w http.ResponseWriter, r *http.Request) {
		httpserver.SetRoute(r.Context(), "/threads/:id")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, said)
	})
	require.Equal(t, http.StatusCreated, rec.Code)
	require.Equal(t, "POST", line["method"])
	require.Equal(t, "/threads/:id", line["route"])
	require.EqualValues(t, 201, line["status"])
	require.EqualValues(t, len(said), line["bytes"])
	require.Contains(t, line, "duration")
	require.NotContains(t, all, said)
}

func TestAccessLogKnowsNetHTTPsPatterns(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /threads/{id}", func(http.ResponseWriter, *http.Request) {})
	_, line, _ := answer(t, request(t, http.MethodGet), mux.ServeHTTP)
	require.Equal(t, "/threads/{id}", line["route"])
	require.EqualValues(t, 200, line["status"])

	_, line, _ = answer(t, request(t, strings.ToUpper(said)), http.NotFound)
	require.Equal(t, "unmatched", line["route"])
	require.Equal(t, "other", line["method"])
	require.EqualValues(t, 404, line["status"])
	httpserver.SetRoute(t.Context(), "outside, which is harmless")
}

func TestRecoverAnswersWithoutThePanicsValue(t *testing.T) {
	t.Parallel()
	for _, value := range []any{said, errors.New(said), &struct{ text string }{said}} {
		rec, line, all := answer(t, request(t, http.MethodGet), func(http.ResponseWriter, *http.Request) { panic(value) })
		require.Equal(t, http.StatusInternalServerError, rec.Code)
		require.JSONEq(t, `{"error":"conversation_audit_internal_error","message":"internal error"}`, rec.Body.String())
		require.EqualValues(t, 500, line["status"])
		require.NotContains(t, all, said)
		require.Contains(t, all, "middleware_test.go", "the stack is missing")
	}
	_, _, all := answer(t, request(t, http.MethodGet), func(http.ResponseWriter, *http.Request) {
		var none []int
		_ = none[len(said)]
	})
	require.Contains(t, all, "index out of range [18] with length 0")
}

func TestRecoverCutsABegunAnswer(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(httpserver.Recover(slog.New(slog.DiscardHandler), nil)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "half")
		w.(http.Flusher).Flush() //nolint:errcheck,forcetypeassert // the recorder is one
		panic("late")
	})))
	defer server.Close()
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	resp, err := get(t, server.URL)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	_, err = io.ReadAll(resp.Body)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

func TestRecoverLetsAnAbortThrough(t *testing.T) {
	t.Parallel()
	_, line, _ := answer(t, request(t, http.MethodGet), func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	require.EqualValues(t, 0, line["status"])
	require.Equal(t, "request", line["msg"])
}
