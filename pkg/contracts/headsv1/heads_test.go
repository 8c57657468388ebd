package headsv1_test

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"verbatim.internal/pkg/contracts/headsv1"
)

var heads = headsv1.Heads{Heads: []headsv1.Head{
	{Kind: "archive", ID: "123e4567-e89b-42d3-a456-426614174000", Version: 12},
	{Kind: "registry_change", ID: "123e4567-e89b-42d3-a456-426614174001", Version: 1},
}}

// The bytes on the wire do not change.
func TestGoldenFile(t *testing.T) {
	t.Parallel()
	want, err := os.ReadFile("testdata/heads.json")
	if err != nil {
		t.Fatal(err)
	}
	got, err := headsv1.Marshal(heads)
	if err != nil || string(got)+"\n" != string(want) {
		t.Errorf("got %s, %v", got, err)
	}
	read, err := headsv1.Unmarshal(got)
	if err != nil || !reflect.DeepEqual(read, heads) {
		t.Errorf("read %+v, %v", read, err)
	}
}

func TestWhatIsNoHeadsIsRefused(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]string{
		"nothing":          `{"heads":[]}`,
		"no list":          `{}`,
		"another member":   `{"heads":[{"kind":"run","id":"a","version":1}],"more":1}`,
		"a member of one":  `{"heads":[{"kind":"run","id":"a","version":1,"more":1}]}`,
		"version 0":        `{"heads":[{"kind":"run","id":"a","version":0}]}`,
		"a great version":  `{"heads":[{"kind":"run","id":"a","version":2147483648}]}`,
		"a kind like none": `{"heads":[{"kind":"Run","id":"a","version":1}]}`,
		"no id":            `{"heads":[{"kind":"run","id":"","version":1}]}`,
		"too many":         `{"heads":[` + strings.Repeat(`{"kind":"run","id":"a","version":1},`, headsv1.MaxHeads) + `{"kind":"run","id":"a","version":1}]}`,
		"no JSON":          `{`,
	} {
		if _, err := headsv1.Unmarshal([]byte(data)); err == nil || !strings.Contains(err.Error(), "headsv1") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := headsv1.Marshal(headsv1.Heads{}); err == nil {
		t.Error("nothing was written")
	}
}
