package archivev1_test

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/contracts/archivev1"
)

var update = flag.Bool("update", false, "write the golden files")

const (
	conversation = "423e4567-e89b-42d3-a456-426614174001"
	sessionA     = "123e4567-e89b-42d3-a456-426614174001"
	sessionB     = "123e4567-e89b-42d3-a456-426614174002"
	run          = "223e4567-e89b-42d3-a456-426614174001"
)

var at = time.Date(2026, 3, 4, 5, 6, 7, 890123000, time.UTC)

func ptr[T any](v T) *T { return &v }

func principal() jsontext.Value {
	return jsontext.Value(`{"id":"ope\u0072ator-7","tenant":"店 <A>","roles":["manager"]}`)
}

func header() archivev1.Header {
	return archivev1.Header{
		ConversationID: conversation, ClientArchiveID: "323e4567-e89b-42d3-a456-426614174001",
		ClientConversationID: "conv-1", CreatorSessionID: sessionA, ClientAppID: "crm-demo", RouteKey: "customers",
		MembershipVersion: 2, MemberCount: 2, CreatedAt: at,
		State: archivev1.State{State: archivev1.StateEnrolling, ConfirmedCount: 1, UpdatedAt: at},
	}
}

func members() []archivev1.Member {
	return []archivev1.Member{
		{
			SessionID: sessionA, DisplayLabel: "CRM account", ClientAppID: "crm-demo", RouteKey: "customers", ClientName: "CRM & more",
			ConfirmedAt: &at, Principal: principal(), OnBehalfOf: "store-a:operator-7",
		},
		{SessionID: sessionB, DisplayLabel: sessionB, ClientAppID: "erp-demo", RouteKey: "orders", ClientName: "ERP"},
	}
}

func created() archivev1.Created { return archivev1.Created{Header: header(), Members: members()} }

func confirmed() archivev1.MemberConfirmed {
	m := members()[1]
	m.ConfirmedAt, m.Principal = &at, jsontext.Value(`{"id":"x"}`)
	return archivev1.MemberConfirmed{
		State:  archivev1.State{State: archivev1.StateReady, ConfirmedCount: 2, UpdatedAt: at},
		Member: m,
	}
}

func events() []archivev1.Event {
	return []archivev1.Event{
		{EventID: "e-1", Sequence: 1, ClientTurnID: "turn-1", Kind: archivev1.KindTurnStart, CreatedAt: at},
		{EventID: "e-2", Sequence: 2, ClientTurnID: "turn-1", Kind: archivev1.KindUserMessage, Content: "  <b>\n👩‍👧 e\u0301 \u2028 ", CreatedAt: at},
		{
			EventID: "e-3", Sequence: 3, ClientTurnID: "turn-1", Kind: archivev1.KindRunLink,
			RunID: run, MemberSessionID: sessionB, ThreadID: 101, CreatedAt: at,
		},
		{EventID: "e-4", Sequence: 4, ClientTurnID: "turn-1", Kind: archivev1.KindAssistantMessage, Content: "Done.", CreatedAt: at},
		{EventID: "e-5", Sequence: 5, ClientTurnID: "turn-1", Kind: archivev1.KindTurnEnd, Status: archivev1.StatusCompleted, CreatedAt: at},
	}
}

func state() archivev1.State {
	return archivev1.State{
		State: archivev1.StateReady, ConfirmedCount: 2, LastSequence: 5, MessageCount: 2, TurnCount: 1,
		LastTurnStatus: ptr(archivev1.StatusCompleted), TextBytes: 42, UpdatedAt: at,
	}
}

func appended() archivev1.EventsAppended {
	return archivev1.EventsAppended{State: state(), Events: events()}
}

func snapshot() archivev1.Snapshot {
	h, all := header(), members()
	h.State = state()
	all[1] = confirmed().Member
	return archivev1.Snapshot{Header: h, Members: all, Events: events(), Last: true}
}

func TestMessagesHaveStableBytes(t *testing.T) {
	t.Parallel()
	golden(t, "created", created())
	golden(t, "member_confirmed", confirmed())
	golden(t, "events_appended", appended())
	golden(t, "snapshot", snapshot())
}

func golden[M archivev1.Message](t *testing.T, name string, m M) {
	t.Helper()
	data, err := archivev1.Marshal(m)
	require.NoError(t, err)
	path := filepath.Join("testdata", name+".json")
	if *update {
		require.NoError(t, os.WriteFile(path, data, 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(data))

	back, err := archivev1.Unmarshal[M](want)
	require.NoError(t, err)
	require.Equal(t, m, back)
}

func TestPrincipalKeepsItsBytes(t *testing.T) {
	t.Parallel()
	data, err := archivev1.Marshal(created())
	require.NoError(t, err)
	require.Contains(t, string(data), string(principal()))
	back, err := archivev1.Unmarshal[archivev1.Created](data)
	require.NoError(t, err)
	require.Equal(t, string(principal()), string(back.Members[0].Principal))
}

func TestUnmarshalIsStrict(t *testing.T) {
	t.Parallel()
	data, err := archivev1.Marshal(appended())
	require.NoError(t, err)
	for name, change := range map[string]func(string) string{
		"unknown member":   func(s string) string { return strings.Replace(s, `{"state"`, `{"secret":"text","state"`, 1) },
		"duplicate member": func(s string) string { return strings.Replace(s, `"kind":`, `"kind":"turn_end","kind":`, 1) },
		"other case":       func(s string) string { return strings.Replace(s, `"event_id"`, `"Event_id"`, 1) },
		"trailing data":    func(s string) string { return s + "{}" },
		"a list":           func(s string) string { return "[" + s + "]" },
		"invalid UTF-8":    func(s string) string { return strings.Replace(s, "Done.", "\xff", 1) },
		"lone surrogate":   func(s string) string { return strings.Replace(s, "Done.", `\ud800`, 1) },
		"cut off":          func(s string) string { return s[:len(s)-1] },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := archivev1.Unmarshal[archivev1.EventsAppended](jsontext.Value(change(string(data))))
			require.ErrorIs(t, err, archivev1.ErrData)
			require.NotContains(t, err.Error(), "text")
		})
	}
}

func TestValidateRefuses(t *testing.T) {
	t.Parallel()
	refuses(t, "created", created, map[string]func(*archivev1.Created){
		"an id that is no UUID":               func(m *archivev1.Created) { m.Header.ConversationID = "x" },
		"an upper-case UUID":                  func(m *archivev1.Created) { m.Header.CreatorSessionID = strings.ToUpper(sessionA) },
		"a conversation id with a space":      func(m *archivev1.Created) { m.Header.ClientConversationID = "a b" },
		"a route that is no key":              func(m *archivev1.Created) { m.Header.RouteKey = "A" },
		"membership version 3":                func(m *archivev1.Created) { m.Header.MembershipVersion = 3 },
		"another number of members":           func(m *archivev1.Created) { m.Members = m.Members[:1] },
		"the same member twice":               func(m *archivev1.Created) { m.Members[1].SessionID = sessionA },
		"a second confirmed member":           func(m *archivev1.Created) { m.Members[1].ConfirmedAt, m.Members[1].Principal = &at, principal() },
		"no confirmed creator":                func(m *archivev1.Created) { m.Header.CreatorSessionID = sessionB },
		"a principal before its confirmation": func(m *archivev1.Created) { m.Members[1].Principal = principal() },
		"a confirmation without a principal":  func(m *archivev1.Created) { m.Members[0].Principal = nil },
		"a principal with white space":        func(m *archivev1.Created) { m.Members[0].Principal = jsontext.Value(`{"id": "x"}`) },
		"a principal that is a list":          func(m *archivev1.Created) { m.Members[0].Principal = jsontext.Value(`[]`) },
		"a principal that is no JSON":         func(m *archivev1.Created) { m.Members[0].Principal = jsontext.Value(`{"id"}`) },
		"an empty label":                      func(m *archivev1.Created) { m.Members[0].DisplayLabel = "" },
		"a label of 129 units":                func(m *archivev1.Created) { m.Members[0].DisplayLabel = strings.Repeat("x", 129) },
		"bindings in version 1":               func(m *archivev1.Created) { m.Header.MembershipVersion = 1 },
		"no binding in version 2":             func(m *archivev1.Created) { m.Members[1].ClientAppID = "" },
		"a creator with another binding":      func(m *archivev1.Created) { m.Members[0].RouteKey = "orders" },
		"ready before all are confirmed":      func(m *archivev1.Created) { m.Header.State.State = archivev1.StateReady },
		"events":                              func(m *archivev1.Created) { m.Header.State.LastSequence, m.Header.State.TurnCount = 1, 1 },
		"a time with nanoseconds":             func(m *archivev1.Created) { m.Header.CreatedAt = at.Add(1) },
		"a time in another zone":              func(m *archivev1.Created) { m.Header.CreatedAt = at.In(time.FixedZone("", 3600)) },
		"no time":                             func(m *archivev1.Created) { m.Header.State.UpdatedAt = time.Time{} },
	})
	refuses(t, "confirmed", confirmed, map[string]func(*archivev1.MemberConfirmed){
		"no confirmation": func(m *archivev1.MemberConfirmed) { m.Member.ConfirmedAt, m.Member.Principal = nil, nil },
		"one confirmed":   func(m *archivev1.MemberConfirmed) { m.State.ConfirmedCount = 1 },
		"another state":   func(m *archivev1.MemberConfirmed) { m.State.State = "closed" },
	})
	refuses(t, "appended", appended, map[string]func(*archivev1.EventsAppended){
		"no event":                    func(m *archivev1.EventsAppended) { m.Events = nil },
		"a gap":                       func(m *archivev1.EventsAppended) { m.Events = slices.Delete(m.Events, 1, 2) },
		"a repeated id":               func(m *archivev1.EventsAppended) { m.Events[1].EventID = "e-1" },
		"another last sequence":       func(m *archivev1.EventsAppended) { m.State.LastSequence = 6 },
		"no status of the last turn":  func(m *archivev1.EventsAppended) { m.State.LastTurnStatus = nil },
		"an unknown status":           func(m *archivev1.EventsAppended) { m.State.LastTurnStatus = ptr("open") },
		"text without messages":       func(m *archivev1.EventsAppended) { m.State.MessageCount = 0 },
		"an enrolling archive":        func(m *archivev1.EventsAppended) { m.State.State = archivev1.StateEnrolling },
		"an unknown kind":             func(m *archivev1.EventsAppended) { m.Events[0].Kind = "thought" },
		"a message without content":   func(m *archivev1.EventsAppended) { m.Events[1].Content = "" },
		"a content beyond its limit":  func(m *archivev1.EventsAppended) { m.Events[1].Content = strings.Repeat("👧", 32_001) },
		"a content of a turn":         func(m *archivev1.EventsAppended) { m.Events[0].Content = "x" },
		"a status of a message":       func(m *archivev1.EventsAppended) { m.Events[1].Status = archivev1.StatusFailed },
		"a turn that ends as running": func(m *archivev1.EventsAppended) { m.Events[4].Status = archivev1.StatusRunning },
		"a link without a thread":     func(m *archivev1.EventsAppended) { m.Events[2].ThreadID = 0 },
		"a run of a message":          func(m *archivev1.EventsAppended) { m.Events[1].RunID = run },
		"sequence 20,001": func(m *archivev1.EventsAppended) {
			m.Events = m.Events[4:]
			m.Events[0].Sequence, m.State.LastSequence = 20_001, 20_001
		},
	})
	refuses(t, "snapshot", snapshot, map[string]func(*archivev1.Snapshot){
		"a last part that ends early":  func(m *archivev1.Snapshot) { m.Events = m.Events[:4] },
		"events beyond the header":     func(m *archivev1.Snapshot) { m.Header.State.LastSequence, m.Last = 4, false },
		"an empty part before the end": func(m *archivev1.Snapshot) { m.Events, m.Last = nil, false },
	})
}

func refuses[M archivev1.Message](t *testing.T, name string, valid func() M, changes map[string]func(*M)) {
	t.Helper()
	for what, change := range changes {
		t.Run(name+"/"+what, func(t *testing.T) {
			t.Parallel()
			m := valid()
			require.NoError(t, m.Validate())
			change(&m)
			var field *archivev1.FieldError
			_, err := archivev1.Marshal(m)
			require.ErrorAs(t, err, &field)
		})
	}
}

func TestContentAtItsLimitIsAccepted(t *testing.T) {
	t.Parallel()
	m := appended()
	m.Events[1].Content = strings.Repeat("👧", 32_000)
	require.NoError(t, m.Validate())
	m.Events[1].Content = strings.Repeat("界", 64_000)
	require.NoError(t, m.Validate())
}

func FuzzUnmarshal(f *testing.F) {
	for _, name := range []string{"created", "member_confirmed", "events_appended", "snapshot"} {
		data, err := os.ReadFile(filepath.Join("testdata", name+".json"))
		require.NoError(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		comesBack[archivev1.Created](t, data)
		comesBack[archivev1.MemberConfirmed](t, data)
		comesBack[archivev1.EventsAppended](t, data)
		comesBack[archivev1.Snapshot](t, data)
	})
}

// comesBack holds that what Unmarshal accepts, Marshal writes so that it reads the same.
func comesBack[M archivev1.Message](t *testing.T, data []byte) {
	t.Helper()
	m, err := archivev1.Unmarshal[M](data)
	if err != nil {
		return
	}
	again, err := archivev1.Marshal(m)
	require.NoError(t, err)
	back, err := archivev1.Unmarshal[M](again)
	require.NoError(t, err)
	require.Equal(t, m, back)
}
