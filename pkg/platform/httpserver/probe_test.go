package httpserver_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/platform/httpserver"
)

func TestProbeTellsReadyFromNot(t *testing.T) {
	t.Parallel()
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" {
			w.WriteHeader(status)
		}
	}))
	addr := strings.TrimPrefix(server.URL, "http://")
	require.NoError(t, httpserver.Probe(t.Context(), addr))
	status = http.StatusServiceUnavailable
	require.ErrorContains(t, httpserver.Probe(t.Context(), addr), "answers 503")
	server.Close()
	require.ErrorContains(t, httpserver.Probe(t.Context(), addr), "does not answer")
	require.ErrorIs(t, httpserver.Probe(t.Context(), "nonsense"), httpserver.ErrAddress)
}
