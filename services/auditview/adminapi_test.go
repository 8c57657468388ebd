package auditview_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/contracts/cloudevent"
	"verbatim.internal/services/auditview/internal/historytest"
)

func TestDetailShowsEveryWordAndNoMore(t *testing.T) {
	t.Parallel()
	b := setup(t)
	texts := []string{"  原始文本\n<tool>&\"quoted\"\\</tool> 👩‍👧 e\u0301 \u202e \u2028 ", "\ttab\r\n"}
	run, recorded := historytest.NewRun(t, 1, historytest.SessionID(0), "conv-1", 2)
	a := historytest.NewArchive(t, 1, true, historytest.SessionID(0), historytest.SessionID(1)).Confirm().Append(texts...).Link(run)
	b.publish(t, append(a.Messages, recorded)...)

	r := b.get(t, viewer, archivePath(strings.ToUpper(a.ConversationID()), ""))
	require.Equal(t, http.StatusOK, r.status, r.text)
	require.Equal(t, "no-store", r.header.Get("Cache-Control"))
	require.Equal(t, "application/json; charset=utf-8", r.header.Get("Content-Type"))
	require.Equal(t, "bailing.agent-conversation-audit-detail.v1", r.body["schema"])
	require.NotContains(t, r.text, `\u003c`, "no HTML escapes")
	require.Contains(t, r.text, `{"id":"principal-0","tenant":"st\u00f6re <ö>"}`, "a principal comes back byte for byte")

	require.Equal(t, map[string]any{
		"conversation_id": a.ConversationID(), "client_archive_id": historytest.ID(0x4001, 1), "client_conversation_id": "conv-1",
		"client_app_id": "client-0", "route_key": "route-0", "state": "ready", "member_count": 2.0, "confirmed_count": 2.0,
		"last_sequence": 7.0, "message_count": 2.0, "turn_count": 2.0, "last_turn_status": "completed",
		"created_at": "2026-03-04T06:06:07.123Z", "updated_at": "2026-03-04T06:06:10.827Z",
	}, r.body["conversation"])
	members := r.list("members")
	require.Len(t, members, 2)
	require.Equal(t, map[string]any{
		"session_id": historytest.SessionID(1), "display_label": "Member <1>", "confirmed": true,
		"client_app_id": "client-1", "client_name": "Client & 1", "route_key": "route-1",
		"principal": map[string]any{"id": "principal-1", "tenant": "störe <ö>"}, "on_behalf_of": "store:1",
	}, members[1])
	events := r.list("events")
	require.Len(t, events, 7)
	require.Equal(t, map[string]any{
		"event_id": "event-1", "sequence": 1.0, "client_turn_id": "turn-1", "kind": "turn_start", "created_at": "2026-03-04T06:06:09.592Z",
	}, events[0])
	require.Equal(t, texts[0], events[1]["content"])
	require.Equal(t, texts[1], events[2]["content"])
	require.Equal(t, map[string]any{
		"event_id": "event-6", "sequence": 6.0, "client_turn_id": "turn-2", "kind": "run_link", "created_at": "2026-03-04T06:06:10.827Z",
		"run_id": run.RunID, "member_session_id": run.SessionID, "thread_id": 101.0,
	}, events[5])
	require.Equal(t, "completed", events[6]["status"])
	require.NotContains(t, events[6], "content")
}

func TestUnconfirmedMembersShowNoIdentityAndV1NoBinding(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a := historytest.NewArchive(t, 1, false, historytest.SessionID(0), historytest.SessionID(1))
	b.publish(t, a.Messages...)
	r := b.get(t, viewer, archivePath(a.ConversationID(), ""))
	conversation, _ := r.body["conversation"].(map[string]any)
	require.Equal(t, "enrolling", conversation["state"])
	require.Nil(t, conversation["last_turn_status"])
	require.Contains(t, conversation, "last_turn_status")
	require.Equal(t, map[string]any{"session_id": historytest.SessionID(1), "display_label": "Member <1>", "confirmed": false}, r.list("members")[1])
	require.NotContains(t, r.list("members")[0], "client_app_id")
	require.Empty(t, r.list("events"))
	require.Equal(t, false, r.body["has_more"])
	require.InDelta(t, 0, r.body["next_after_sequence"], 0)
}

func TestEventPagesAreBoundedByCount(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a := historytest.NewArchive(t, 1, false, historytest.SessionID(0))
	for range 9 {
		a.Append(strings.Split(strings.Repeat("x", 40), "")...)
	}
	b.publish(t, a.Messages...) // 378 events
	for query, want := range map[string]struct {
		first, count, next float64
		more               bool
	}{
		"":                                 {1, 100, 100, true},
		"?limit=0":                         {1, 100, 100, true},
		"?limit=1":                         {1, 1, 1, true},
		"?limit=007":                       {1, 7, 7, true},
		"?limit=9007199254740991":          {1, 200, 200, true},
		"?after_sequence=200&limit=":       {0, 0, 0, false}, // refused below
		"?after_sequence=178":              {179, 100, 278, true},
		"?after_sequence=278":              {279, 100, 378, false},
		"?after_sequence=277&other":        {278, 100, 377, true},
		"?after_sequence=378":              {0, 0, 378, false},
		"?after_sequence=9007199254740991": {0, 0, 9007199254740991, false},
	} {
		r := b.get(t, viewer, archivePath(a.ConversationID(), query))
		if strings.HasSuffix(query, "limit=") {
			r.fails(t, http.StatusBadRequest, "invalid_request")
			continue
		}
		events := r.list("events")
		require.Len(t, events, int(want.count), query)
		if len(events) > 0 {
			require.InDelta(t, want.first, events[0]["sequence"], 0, query)
		}
		require.InDelta(t, want.next, r.body["next_after_sequence"], 0, query)
		require.Equal(t, want.more, r.body["has_more"], query)
	}
}

func TestEventPagesEndAtFourMiBOfText(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a := historytest.NewArchive(t, 1, false, historytest.SessionID(0))
	long := strings.Repeat("界", 64_000) // 192,000 bytes, 21 of them below 4 MiB
	for range 30 {
		a.Append(long)
	}
	var all []cloudevent.Event
	all = append(all, a.Messages...)
	b.publish(t, all...)

	seen, after, pages := 0, "0", 0
	for more := true; more; pages++ {
		r := b.get(t, viewer, archivePath(a.ConversationID(), "?limit=200&after_sequence="+after))
		text := 0
		for _, e := range r.list("events") {
			seen++
			require.InDelta(t, seen, e["sequence"], 0)
			content, _ := e["content"].(string)
			text += len(content)
		}
		require.LessOrEqual(t, text, 4<<20)
		more, _ = r.body["has_more"].(bool)
		after = strings.TrimSuffix(strings.Fields(strings.Split(r.text, `"next_after_sequence":`)[1])[0], "}")
	}
	require.Equal(t, 90, seen)
	require.Equal(t, 2, pages)
}

func TestListIsOrderedAndPaged(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const archives = 103
	for n := range archives {
		b.publish(t, historytest.NewArchive(t, n, false, historytest.SessionID(0)).Messages...)
	}
	for query, want := range map[string]struct {
		count int
		next  any
	}{
		"":                         {50, 50.0},
		"?limit=0":                 {50, 50.0},
		"?limit=1000":              {100, 100.0},
		"?limit=3&offset=100":      {3, nil},
		"?limit=3&offset=99":       {3, 102.0},
		"?offset=9007199254740991": {0, nil},
	} {
		r := b.get(t, viewer, "/admin/api/conversation-audits"+query)
		require.Equal(t, http.StatusOK, r.status, r.text)
		require.Equal(t, "bailing.agent-conversation-audit-list.v1", r.body["schema"])
		require.Len(t, r.list("items"), want.count, query)
		require.Contains(t, r.body, "next_offset")
		require.Equal(t, want.next, r.body["next_offset"], query)
		require.Equal(t, want.next != nil, r.body["has_more"], query)
	}
	items := b.get(t, viewer, "/admin/api/conversation-audits?limit=2").list("items")
	require.Equal(t, "conv-102", items[0]["client_conversation_id"])
	require.Equal(t, "conv-101", items[1]["client_conversation_id"])
}

func TestParametersAreStrict(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a := historytest.NewArchive(t, 1, false, historytest.SessionID(0))
	b.publish(t, a.Messages...)
	for _, value := range []string{"-1", "+1", "x", "1.0", "1e1", "9007199254740992", "99999999999999999999", "%00", "%20", "1%20", "%zz", "0x1", "٣", "1&NAME=1"} {
		for path, names := range map[string][]string{
			"/admin/api/conversation-audits":    {"limit", "offset"},
			archivePath(a.ConversationID(), ""): {"limit", "after_sequence"},
		} {
			for _, name := range names {
				b.get(t, viewer, path+"?"+name+"="+strings.ReplaceAll(value, "NAME", name)).fails(t, http.StatusBadRequest, "invalid_request")
			}
		}
	}
	require.Equal(t, http.StatusOK, b.get(t, viewer, "/admin/api/conversation-audits?limit=1&limits=x").status)
}

func TestPermissions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	run, recorded := historytest.NewRun(t, 1, historytest.SessionID(0), "conv-1", 1)
	a := historytest.NewArchive(t, 1, false, historytest.SessionID(0)).Link(run)
	b.publish(t, append(a.Messages, recorded)...)
	list, detail, trace := "/admin/api/conversation-audits", archivePath(a.ConversationID(), ""), tracePath(run.ThreadID, run.RunID)

	for _, path := range []string{list, detail, trace} {
		require.Equal(t, http.StatusOK, b.get(t, viewer, path).status, path)
		b.get(t, nothing, path).fails(t, http.StatusForbidden, "forbidden")
		for _, bearer := range []string{"", agent, "bva_short", viewer + "V", strings.ToLower(viewer), strings.Replace(viewer, "V", "W", 1)} {
			r := b.get(t, bearer, path)
			r.fails(t, http.StatusUnauthorized, "unauthorized")
			require.Equal(t, "Bearer", r.header.Get("WWW-Authenticate"))
		}
		b.get(t, "", path+"?token="+viewer+"&access_token="+viewer).fails(t, http.StatusUnauthorized, "unauthorized")
	}
	require.Equal(t, http.StatusOK, b.get(t, metadata, list).status)
	require.Equal(t, http.StatusOK, b.get(t, metadata, trace).status)
	b.get(t, metadata, detail).fails(t, http.StatusForbidden, "forbidden")
	b.get(t, metadata, archivePath("not-a-uuid", "?limit=x")).fails(t, http.StatusForbidden, "forbidden")
	b.get(t, nothing, list+"?limit=x").fails(t, http.StatusForbidden, "forbidden")

	for name, header := range map[string][]string{
		"two bearers":     {"Bearer " + viewer, "Bearer " + viewer},
		"another way":     {"Basic " + viewer},
		"no scheme":       {viewer},
		"two spaces":      {"Bearer  " + viewer},
		"something after": {"Bearer " + viewer + " x"},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.service.URL()+list, http.NoBody)
		require.NoError(t, err)
		req.Header["Authorization"] = header
		require.Equal(t, http.StatusUnauthorized, send(t, req).status, name)
	}
	require.NotContains(t, b.logs.String(), "VVVV")
}

func TestWhatIsNotThereIsNotFound(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a := historytest.NewArchive(t, 1, false, historytest.SessionID(0))
	b.publish(t, a.Messages...)
	for _, id := range []string{historytest.ID(9, 9), "not-a-uuid", "%00", a.ConversationID() + "0", "00000000-0000-0000-0000-000000000000"} {
		b.get(t, viewer, archivePath(id, "")).fails(t, http.StatusNotFound, "conversation_audit_not_found")
	}
	for _, path := range []string{"/admin", "/admin/api", "/admin/api/", "/admin/api/conversation-audits/", "/admin/api/conversation-audits/x/y", "/admin/api/runs/x", "/admin/api/threads/1/"} {
		b.get(t, viewer, path).fails(t, http.StatusNotFound, "not_found")
		b.get(t, "", path).fails(t, http.StatusUnauthorized, "unauthorized")
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch} {
		b.do(t, method, viewer, archivePath(a.ConversationID(), "")).fails(t, http.StatusNotFound, "not_found")
	}
	require.Equal(t, http.StatusNotFound, b.get(t, "", "/elsewhere").status)
}
