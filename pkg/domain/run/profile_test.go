package run_test

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"pgregory.net/rapid"

	"verbatim.internal/pkg/domain/run"
)

func TestARevisionIsTheHashOfTheCanonicalAnswer(t *testing.T) {
	t.Parallel()
	got, err := run.Revision(map[string]any{"b": 1.0, "a": []string{}})
	want := sha256.Sum256([]byte(`{"a":[],"b":1}`))
	if err != nil || got != hex.EncodeToString(want[:]) {
		t.Errorf("got %s, %v", got, err)
	}
	if got, err := run.Revision("\xff"); err == nil {
		t.Errorf("what is no JSON has the revision %s", got)
	}
}

func TestARevisionChangesExactlyWithTheContent(t *testing.T) {
	t.Parallel()
	// UTF-8 only: names and instructions are, by the registry's rules.
	text := rapid.StringOf(rapid.RuneFrom([]rune("ab \n\"\\é漢😀")))
	draw := rapid.Custom(func(t *rapid.T) run.Workspace {
		return run.Workspace{RouteKey: "orders", Name: text.Draw(t, "name"), Instructions: text.Draw(t, "instructions")}
	})
	rapid.Check(t, func(t *rapid.T) {
		one, two := draw.Draw(t, "one"), draw.Draw(t, "two")
		first, err := run.Revision(one)
		if err != nil {
			t.Fatal(err)
		}
		second, err := run.Revision(two)
		if err != nil || (first == second) != (one == two) {
			t.Fatalf("%+v and %+v have the revisions %s and %s, %v", one, two, first, second, err)
		}
	})
}
