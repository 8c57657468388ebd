package httpapi_test

import (
	"errors"
	"strings"
	"testing"

	"verbatim.internal/pkg/contracts/httpapi"
)

func TestCreateTellsTheSchemasApart(t *testing.T) {
	t.Parallel()
	const (
		ids     = `"client_archive_id":"a","client_conversation_id":"b"`
		v1      = ids + `,"route":"r","member_session_ids":["m"]`
		schema2 = `"schema":"bailing.agent-conversation-audit-create.v2"`
		v2      = schema2 + `,` + ids + `,"members":[{"session_id":"s","client_app_id":"c","route":"r"}]`
	)
	for name, tc := range map[string]struct {
		members string
		version int // 0: refused
	}{
		"v1":                         {v1, 1},
		"v1 with labels":             {v1 + `,"member_labels":{"m":"l"}`, 1},
		"v1 with no label":           {v1 + `,"member_labels":{}`, 1},
		"v1 with no members":         {ids + `,"route":"r","member_session_ids":[]`, 1},
		"v1 without a route":         {ids + `,"member_session_ids":["m"]`, 0},
		"v1 without members":         {ids + `,"route":"r"`, 0},
		"v1 with members of v2":      {v1 + `,"members":[]`, 0},
		"v1 that names v1":           {`"schema":"bailing.agent-conversation-audit-create.v1",` + v1, 0},
		"v2":                         {v2, 2},
		"v2 with a label":            {schema2 + `,` + ids + `,"members":[{"session_id":"s","client_app_id":"c","route":"r","label":"l"}]`, 2},
		"v2 with no members":         {schema2 + `,` + ids + `,"members":[]`, 2},
		"v2 without members":         {schema2 + `,` + ids, 0},
		"v2 without its schema":      {ids + `,"members":[]`, 0},
		"v2 with a route":            {v2 + `,"route":"r"`, 0},
		"v2 with an empty route":     {v2 + `,"route":""`, 0},
		"v2 with session ids":        {v2 + `,"member_session_ids":[]`, 0},
		"v2 with labels":             {v2 + `,"member_labels":{}`, 0},
		"v2 with v1's fields":        {schema2 + `,` + v1, 0},
		"an empty schema":            {`"schema":"",` + v1, 0},
		"the header's schema":        {`"schema":"bailing.agent-conversation-audit.v1",` + v1, 0},
		"schema in another case":     {`"schema":"Bailing.agent-conversation-audit-create.v2",` + ids + `,"members":[]`, 0},
		"schema of null":             {`"schema":null,` + v1, 0},
		"route of null":              {ids + `,"route":null,"member_session_ids":["m"]`, 0},
		"label of null":              {v1 + `,"member_labels":{"m":null}`, 0},
		"labels of null":             {v1 + `,"member_labels":null`, 0},
		"member of null":             {ids + `,"route":"r","member_session_ids":[null]`, 0},
		"a label of null in v2":      {schema2 + `,` + ids + `,"members":[{"session_id":"s","client_app_id":"c","route":"r","label":null}]`, 0},
		"undeclared":                 {v1 + `,"reasoning":"x"`, 0},
		"undeclared in a member":     {schema2 + `,` + ids + `,"members":[{"session_id":"s","client_app_id":"c","route":"r","token":"x"}]`, 0},
		"label is a number":          {v1 + `,"member_labels":{"m":1}`, 0},
		"labels are a list":          {v1 + `,"member_labels":[]`, 0},
		"a label twice":              {v1 + `,"member_labels":{"m":"l","m":"l"}`, 0},
		"a label twice, once hidden": {v1 + `,"member_labels":{"m":"l","\u006d":"l"}`, 0},
		"id is a number":             {`"client_archive_id":1,"client_conversation_id":"b","route":"r","member_session_ids":["m"]`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, v2, err := httpapi.DecodeCreate([]byte("{" + tc.members + "}"))
			switch {
			case tc.version == 0 && !errors.Is(err, httpapi.ErrInvalid):
				t.Errorf("got %v", err)
			case tc.version != 0 && (err != nil || v2 != (tc.version == 2) || c.ClientArchiveID != "a"):
				t.Errorf("got %+v, %v, %v", c, v2, err)
			}
		})
	}
}

func TestCreateKeepsWhatWasSent(t *testing.T) {
	t.Parallel()
	c, _, err := httpapi.DecodeCreate([]byte(`{"member_labels":{"m":"\u00e9\ud83d\ude00 <&>"},"member_session_ids":["M","m"],"route":"r",
		"client_conversation_id":"","client_archive_id":"A"}`))
	if err != nil {
		t.Fatal(err)
	}
	if c.ClientArchiveID != "A" || *c.Route != "r" || len(*c.MemberSessionIDs) != 2 || (*c.MemberSessionIDs)[0] != "M" || (*c.MemberLabels)["m"] != "é😀 <&>" {
		t.Errorf("got %+v", c)
	}
}

func TestConfirmTakesExactlyAnEmptyObject(t *testing.T) {
	t.Parallel()
	for _, in := range []string{"{}", " { } ", "\t{\n}\r\n"} {
		if err := httpapi.DecodeConfirm([]byte(in)); err != nil {
			t.Errorf("%q: %v", in, err)
		}
	}
	for _, in := range []string{"", " ", "null", "[]", `""`, "0", "true", "{", "{}{}", "{},", `{"session_id":"x"}`, `{"":null}`, "\ufeff{}", "{}\x00", "// x\n{}", "{,}"} {
		if err := httpapi.DecodeConfirm([]byte(in)); !errors.Is(err, httpapi.ErrInvalid) {
			t.Errorf("%q: got %v", in, err)
		}
	}
}

func TestAppendTellsAbsentFromEmpty(t *testing.T) {
	t.Parallel()
	a, err := httpapi.DecodeAppend([]byte(`{"events":[
		{"event_id":"e","sequence":3.0,"client_turn_id":"t","kind":"k"},
		{"content":"","status":"","run_id":"","member_session_id":""}]}`))
	if err != nil || len(a.Events) != 2 {
		t.Fatalf("got %+v, %v", a, err)
	}
	first, second := a.Events[0], a.Events[1]
	if first.EventID != "e" || first.Sequence != 3 || first.ClientTurnID != "t" || first.Kind != "k" ||
		first.Content != nil || first.Status != nil || first.RunID != nil || first.MemberSessionID != nil {
		t.Errorf("got %+v", first)
	}
	if second.Sequence != 0 || second.Content == nil || second.Status == nil || second.RunID == nil || second.MemberSessionID == nil {
		t.Errorf("got %+v", second)
	}
}

func TestAppendRefusesWhatIsNotDeclared(t *testing.T) {
	t.Parallel()
	for name, event := range map[string]string{
		"thread_id": `"thread_id":7`, "created_at": `"created_at":"2030-01-01T00:00:00Z"`, "metadata": `"metadata":{}`, "case": `"Content":"x"`,
		"null content": `"content":null`, "null sequence": `"sequence":null`, "content is a number": `"content":1`, "content is a list": `"content":["x"]`,
		"sequence is a text": `"sequence":"1"`, "sequence is a fraction": `"sequence":1.5`, "sequence beyond 2^53-1": `"sequence":9007199254740992`,
		"sequence with a plus": `"sequence":+1`, "sequence with a zero before": `"sequence":01`, "sequence is hexadecimal": `"sequence":0x1`,
		"content twice": `"content":"a","content":"a"`, "a control that is not escaped": "\"content\":\"a\nb\"", "an unknown escape": `"content":"\x41"`,
		"a lone high surrogate": `"content":"\ud800"`, "a lone low surrogate": `"content":"\udc00"`, "surrogates exchanged": `"content":"\ude00\ud83d"`,
		"invalid UTF-8": "\"content\":\"\xc3\x28\"", "a surrogate in UTF-8": "\"content\":\"\xed\xa0\x80\"", "single quotes": `'content':'x'`,
	} {
		if _, err := httpapi.DecodeAppend([]byte(`{"events":[{` + event + `}]}`)); !errors.Is(err, httpapi.ErrInvalid) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for name, body := range map[string]string{
		"an event of null": `{"events":[null]}`, "an event is a text": `{"events":["x"]}`, "events are an object": `{"events":{}}`, "a field beside": `{"events":[],"x":0}`,
		"a deep value": `{"x":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`, "UTF-16": "{\x00}\x00",
	} {
		if _, err := httpapi.DecodeAppend([]byte(body)); !errors.Is(err, httpapi.ErrInvalid) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// An error that quoted the body would carry a conversation into a log.
func TestErrorsQuoteNothing(t *testing.T) {
	t.Parallel()
	for _, in := range []string{`{"s3cret":1}`, `{"events":"s3cret"}`, `{"events":[{"sequence":"s3cret"}]}`, `s3cret`} {
		if _, err := httpapi.DecodeAppend([]byte(in)); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("got %v", err)
		}
	}
}
