package httpapi_test

import (
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"verbatim.internal/pkg/contracts/httpapi"
)

func ptr[T any](v T) *T { return &v }

// The answers, word for word: names, order, and what is null or absent when.
func TestAnswersOnTheWire(t *testing.T) {
	t.Parallel()
	header := httpapi.Header{
		ConversationID: "1", ClientArchiveID: "2", ClientConversationID: "3", ClientAppID: "4", RouteKey: "5", State: "ready", MemberCount: 6,
		ConfirmedCount: 7, LastSequence: 8, MessageCount: 9, TurnCount: 10, LastTurnStatus: ptr("running"), CreatedAt: "11", UpdatedAt: "12",
	}
	const fields = `"conversation_id":"1","client_archive_id":"2","client_conversation_id":"3","client_app_id":"4","route_key":"5","state":"ready",` +
		`"member_count":6,"confirmed_count":7,"last_sequence":8,"message_count":9,"turn_count":10,"last_turn_status":"running","created_at":"11","updated_at":"12"`
	for name, tc := range map[string]struct {
		answer any
		want   string
	}{
		"error":  {httpapi.Error{Code: "c", Message: "m"}, `{"error":"c","message":"m"}`},
		"header": {httpapi.HeaderAnswer{Schema: httpapi.SchemaHeader, Header: header}, `{"schema":"bailing.agent-conversation-audit.v1",` + fields + `}`},
		"ack": {
			httpapi.Ack{Schema: httpapi.SchemaAck, ConversationID: "1", LastSequence: 5},
			`{"schema":"bailing.agent-conversation-audit-ack.v1","conversation_id":"1","last_sequence":5}`,
		},
		"capabilities": {
			httpapi.Capabilities{Schema: httpapi.SchemaCapabilities, CrossBindingMembers: true, MemberBindings: httpapi.MemberBindings},
			`{"schema":"bailing.agent-conversation-audit-capabilities.v1","cross_binding_members":true,"member_bindings":"session-client-route.v1"}`,
		},
		"empty list": {
			httpapi.List{Schema: httpapi.SchemaList, Items: []httpapi.Header{}},
			`{"schema":"bailing.agent-conversation-audit-list.v1","items":[],"has_more":false,"next_offset":null}`,
		},
		"list": {
			httpapi.List{Schema: httpapi.SchemaList, Items: []httpapi.Header{header}, HasMore: true, NextOffset: ptr(int64(50))},
			`{"schema":"bailing.agent-conversation-audit-list.v1","items":[{` + fields + `}],"has_more":true,"next_offset":50}`,
		},
		"detail": {
			httpapi.Detail{
				Schema: httpapi.SchemaDetail, Conversation: header,
				Members: []httpapi.Member{{SessionID: "s", DisplayLabel: "l"}}, Events: []httpapi.Event{}, NextAfterSequence: 8,
			},
			`{"schema":"bailing.agent-conversation-audit-detail.v1","conversation":{` + fields + `},` +
				`"members":[{"session_id":"s","display_label":"l","confirmed":false}],"events":[],"has_more":false,"next_after_sequence":8}`,
		},
		"member of v2": {
			httpapi.Member{
				SessionID: "s", DisplayLabel: "l", Confirmed: true, ClientAppID: ptr("c"), ClientName: ptr(""), RouteKey: ptr("r"),
				Principal: jsontext.Value(`{"id":"<é>","roles":["a"]}`), OnBehalfOf: ptr(""),
			},
			`{"session_id":"s","display_label":"l","confirmed":true,"client_app_id":"c","client_name":"","route_key":"r",` +
				`"principal":{"id":"<é>","roles":["a"]},"on_behalf_of":""}`,
		},
		"message": {
			httpapi.Event{EventID: "e", Sequence: 2, ClientTurnID: "t", Kind: "user_message", Content: ptr("<script>&\u2028\x7f\"\\\n😀"), CreatedAt: "11"},
			`{"event_id":"e","sequence":2,"client_turn_id":"t","kind":"user_message","content":"<script>&` + "\u2028\x7f" + `\"\\\n😀","created_at":"11"}`,
		},
		"run link": {
			httpapi.Event{
				EventID: "e", Sequence: 3, ClientTurnID: "t", Kind: "run_link", RunID: ptr("r"), MemberSessionID: ptr("s"),
				ThreadID: ptr(int64(1<<53 - 1)), CreatedAt: "11",
			},
			`{"event_id":"e","sequence":3,"client_turn_id":"t","kind":"run_link","run_id":"r","member_session_id":"s","thread_id":9007199254740991,"created_at":"11"}`,
		},
		"turn end": {
			httpapi.Event{EventID: "e", Sequence: 4, ClientTurnID: "t", Kind: "turn_end", Status: ptr("failed"), CreatedAt: "11"},
			`{"event_id":"e","sequence":4,"client_turn_id":"t","kind":"turn_end","status":"failed","created_at":"11"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := json.Marshal(tc.answer)
			if err != nil || string(got) != tc.want {
				t.Errorf("got  %s, %v\nwant %s", got, err, tc.want)
			}
		})
	}
}

func TestTheTurnStatusIsNullBeforeTheFirst(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(httpapi.Header{})
	var back map[string]any
	if err != nil || json.Unmarshal(got, &back) != nil {
		t.Fatalf("got %s, %v", got, err)
	}
	if v, there := back["last_turn_status"]; !there || v != nil {
		t.Errorf("got %s", got)
	}
}

func TestTimesAreUTCWithMillisecondsCutNotRounded(t *testing.T) {
	t.Parallel()
	for want, in := range map[string]time.Time{
		"2030-01-02T03:04:05.000Z": time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC),
		"2030-01-02T03:04:05.123Z": time.Date(2030, 1, 2, 3, 4, 5, 123_999_999, time.UTC),
		"2029-12-31T23:59:59.999Z": time.Date(2029, 12, 31, 23, 59, 59, 999_999_999, time.UTC),
		"2030-01-01T23:04:05.100Z": time.Date(2030, 1, 2, 1, 4, 5, 100_000_000, time.FixedZone("", 2*60*60)),
		"1969-12-31T23:59:59.999Z": time.Unix(0, -1),
	} {
		if got := httpapi.FormatTime(in); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
