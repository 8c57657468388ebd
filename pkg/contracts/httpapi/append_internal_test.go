package httpapi

import (
	"reflect"
	"testing"
)

// What is read in one pass is read as every other body is: the same, if at all.
func FuzzScanAppend(f *testing.F) {
	for _, seed := range []string{
		`{"events":[]}`,
		`{"events":[{}]}`,
		` { "events" : [ { "event_id" : "e" , "sequence" : 12 , "client_turn_id" : "t", "kind":"k", "content":"x" } , {"status":"s"} ] } `,
		`{"events":[{"event_id":"a\"b\\c\/d\ne\tf\r","sequence":1,"run_id":"r","member_session_id":"m"}]}`,
		`{"events":[{"event_id":"e","event_id":"e"}]}`,
		`{"events":[{"sequence":01}]}`, `{"events":[{"sequence":1234567890}]}`, `{"events":[{"sequence":1.0}]}`,
		`{"events":[{"content":"` + "a\x00b" + `"}]}`, `{"events":[{"content":"\ud83d\ude00 \u00e9"}]}`, "{\"events\":[{\"content\":\"\xff\"}]}",
		`{"events":[{"content":null}]}`, `{"events":[{}],"more":1}`, `{"events":[{}]}{}`, `{"events":[{},]}`, `{"events":[{"kind":"k",}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, ok := scanAppend(data)
		if !ok {
			return
		}
		var want Append
		if err := Decode(data, &want); err != nil {
			t.Fatal("scanned, and not valid")
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("scanned %+v, decoded %+v", got, want)
		}
	})
}

// Usual bodies are read in one pass: the fuzz target compares nothing otherwise.
func TestUsualBodiesAreScanned(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"compact":  `{"events":[{"event_id":"e","sequence":7,"client_turn_id":"t","kind":"user_message","content":"Line\n\t\"quoted\" \\ – 文"}]}`,
		"indented": "{\n  \"events\": [\n    {\"kind\": \"turn_end\", \"status\": \"completed\"},\n    {\"run_id\": \"r\", \"member_session_id\": \"m\"}\n  ]\n}\n",
	} {
		if _, ok := scanAppend([]byte(body)); !ok {
			t.Errorf("%s: not scanned", name)
		}
	}
}
