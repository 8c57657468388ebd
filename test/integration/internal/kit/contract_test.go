package kit_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"verbatim.internal/test/integration/internal/kit"
)

const (
	ack = `{"schema":"bailing.agent-conversation-audit-ack.v1",` +
		`"conversation_id":"423e4567-e89b-42d3-a456-426614174001","last_sequence":1}`
	goodAppend = `{"events":[{"event_id":"e","sequence":1.0,"client_turn_id":"t","kind":"turn_start"}]}`
	appendPath = "/agent-api/v1/conversation-audits/423e4567-e89b-42d3-a456-426614174001/events"
)

func TestContractCheck(t *testing.T) {
	t.Parallel()
	good := http.Header{
		"Content-Type": {"application/json"}, "Cache-Control": {"no-store"}, "X-Request-Id": {"r-1"},
	}
	with := func(name, value string) http.Header {
		h := good.Clone()
		h.Set(name, value)
		return h
	}
	without := func(name string) http.Header {
		h := good.Clone()
		h.Del(name)
		return h
	}
	refusal := func(code string) string { return `{"error":"` + code + `","message":"m"}` }
	cases := map[string]struct {
		method, path, request string
		answer                kit.Response
		wrong                 string // part of the complaint; empty: the exchange is right
	}{
		"right":              {"POST", appendPath, goodAppend, kit.Response{Status: 200, Header: good, Body: []byte(ack)}, ""},
		"right refusal":      {"POST", appendPath, `{}`, kit.Response{Status: 400, Header: good, Body: []byte(refusal("invalid_request"))}, ""},
		"wrong member":       {"POST", appendPath, goodAppend, kit.Response{Status: 200, Header: good, Body: []byte(strings.Replace(ack, "schema", "Schema", 1))}, "schema"},
		"undeclared member":  {"POST", appendPath, goodAppend, kit.Response{Status: 200, Header: good, Body: []byte(`{"x":1,` + ack[1:])}, "x"},
		"no cache header":    {"POST", appendPath, goodAppend, kit.Response{Status: 200, Header: without("Cache-Control"), Body: []byte(ack)}, "Cache-Control"},
		"wrong cache header": {"POST", appendPath, goodAppend, kit.Response{Status: 200, Header: with("Cache-Control", "private"), Body: []byte(ack)}, "Cache-Control"},
		"no request id":      {"POST", appendPath, goodAppend, kit.Response{Status: 200, Header: without("X-Request-Id"), Body: []byte(ack)}, "X-Request-Id"},
		"wrong type":         {"POST", appendPath, goodAppend, kit.Response{Status: 200, Header: with("Content-Type", "text/plain"), Body: []byte(ack)}, "text/plain"},
		"undeclared status":  {"POST", appendPath, goodAppend, kit.Response{Status: 418, Header: good, Body: []byte(ack)}, "status"},
		"code of another":    {"POST", appendPath, `{}`, kit.Response{Status: 409, Header: good, Body: []byte(refusal("invalid_request"))}, "error"},
		"no scheme":          {"POST", appendPath, goodAppend, kit.Response{Status: 401, Header: good, Body: []byte(refusal("unauthorized"))}, "WWW-Authenticate"},
		"bad body accepted":  {"POST", appendPath, `{"events":[]}`, kit.Response{Status: 200, Header: good, Body: []byte(ack)}, "was accepted"},
		"extra accepted": {
			"POST", appendPath, strings.Replace(goodAppend, `"kind"`, `"content":"x","kind"`, 1),
			kit.Response{Status: 200, Header: good, Body: []byte(ack)},
			"was accepted",
		},
		"control character accepted": {
			"POST", appendPath, `{"events":[{"event_id":"e","sequence":1,"client_turn_id":"t","kind":"user_message","content":"a\u0007"}]}`,
			kit.Response{Status: 200, Header: good, Body: []byte(ack)},
			"was accepted",
		},
		"unknown path":          {"GET", "/agent-api/v1/x", "", kit.Response{Status: 404, Header: good, Body: []byte(refusal("not_found"))}, ""},
		"unknown path accepted": {"GET", "/agent-api/v1/x", "", kit.Response{Status: 200, Header: good, Body: []byte(refusal("not_found"))}, "answered 200"},
		"unknown path, no JSON": {"GET", "/agent-api/v1/x", "", kit.Response{Status: 404, Header: good, Body: []byte("404 page not found")}, "JSON"},
		"unknown path, cached":  {"GET", "/agent-api/v1/x", "", kit.Response{Status: 404, Header: without("Cache-Control"), Body: []byte(refusal("not_found"))}, "cached"},
	}
	contract, err := kit.IngestContract()
	require.NoError(t, err)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			request := httptest.NewRequestWithContext(t.Context(), c.method, c.path, strings.NewReader(c.request))
			request.Header.Set("Content-Type", "application/json")
			err := contract.Check(t.Context(), request, []byte(c.request), c.answer)
			if c.wrong == "" {
				assert.NoError(t, err)
			} else {
				assert.ErrorContains(t, err, c.wrong)
			}
		})
	}
}
