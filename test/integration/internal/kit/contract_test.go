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
	turn       = `{"client_conversation_id":"c","client_turn_id":"t","user_message_id":"u","user_input":"i","page_context":{"x":[null]}}`
	turnPath   = "/agent-api/v1/workspaces/orders/turns"
)

// turnContext answers turn.
var turnContext = strings.TrimSuffix(turn, "}") + `,"schema":"bailing.agent-turn-context.v1","run_id":"423e4567-e89b-42d3-a456-426614174001",` +
	`"thread_id":1,"route_key":"orders","instructions":"","knowledge":[],"memory":[],"tools":[],"created_at":"2026-06-08T09:00:00.000Z"}`

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

		"turn":                      {"POST", turnPath, turn, kit.Response{Status: 200, Header: good, Body: []byte(turnContext)}, ""},
		"null outside page context": {"POST", turnPath, strings.Replace(turn, `"i"`, "null", 1), kit.Response{Status: 200, Header: good, Body: []byte(turnContext)}, "was accepted"},
		"blank input accepted":      {"POST", turnPath, strings.Replace(turn, `"i"`, `" "`, 1), kit.Response{Status: 200, Header: good, Body: []byte(turnContext)}, "was accepted"},
		"knowledge in a turn":       {"POST", turnPath, turn, kit.Response{Status: 200, Header: good, Body: []byte(strings.Replace(turnContext, `"knowledge":[]`, `"knowledge":[{}]`, 1))}, "knowledge"},
		"token endpoint":            {"POST", "/agent-auth/v1/token", "{}", kit.Response{Status: 400, Header: with("Pragma", "no-cache"), Body: []byte(refusal("invalid_grant"))}, ""},
		"token without Pragma":      {"POST", "/agent-auth/v1/token", "{}", kit.Response{Status: 400, Header: good, Body: []byte(refusal("invalid_grant"))}, "Pragma"},
		"not modified, no tag":      {"GET", "/agent-api/v1/workspaces", "", kit.Response{Status: 304, Header: good}, "ETag"},
		"not modified":              {"GET", "/agent-api/v1/workspaces", "", kit.Response{Status: 304, Header: with("ETag", `"`+strings.Repeat("0", 64)+`"`)}, ""},
		"agent auth, cached":        {"GET", "/agent-auth/v1/x", "", kit.Response{Status: 404, Header: without("Cache-Control"), Body: []byte(refusal("not_found"))}, "cached"},
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
