package execution_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"verbatim.internal/pkg/domain/execution"
	"verbatim.internal/pkg/domain/refusal"
)

func grantFields() execution.GrantFields {
	return execution.GrantFields{
		SecretRef: ptr(vaultRef), AllowedActions: []string{"read", "repo:push"}, Constraints: jsontext.Value(`{"ttl_seconds":900,"branch":"main","dry_run":false}`),
		ExpiresAt: ptr("2026-06-09T00:00:00Z"), Status: ptr("active"), CreatedBy: ptr("ada"), CreatedAt: ptr("2026-06-08T11:00:00+02:00"),
	}
}

func newGrant(t *testing.T, f execution.GrantFields) execution.Grant {
	t.Helper()
	g, _, err := execution.NewGrant(f)
	if err != nil {
		t.Fatalf("refused: %v", err)
	}
	return g
}

func TestAGrantIsKeptWhole(t *testing.T) {
	t.Parallel()
	f := grantFields()
	f.RevokedBy, f.RevokedAt = ptr("bob"), ptr("2026-06-08T10:00:00Z")
	facts, changed := over(t, newGrant(t, f), nil)
	const want = `{"allowed_actions":["read","repo:push"],"constraints":{"branch":"main","dry_run":false,"ttl_seconds":900},"created_at":"2026-06-08T09:00:00Z",` +
		`"created_by":"ada","expires_at":"2026-06-09T00:00:00Z","revoked_at":"2026-06-08T10:00:00Z","revoked_by":"bob","secret_ref":"azkv://vault/orders-db","status":"active"}`
	if string(facts) != want || !changed {
		t.Errorf("got %s", facts)
	}
	if facts, _ := over(t, newGrant(t, execution.GrantFields{}), nil); string(facts) != `{}` {
		t.Errorf("got %s", facts)
	}
}

func TestConstraintsAreScalars(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		in, kept string
		dropped  int
	}{
		"absent":         {`null`, `{}`, 0},
		"none":           {`{}`, `{"constraints":{}}`, 0},
		"no scalars":     {`{"paths":["a"],"by":{"x":1},"n":1,"gone":null}`, `{"constraints":{"n":1}}`, 2},
		"other names":    {`{"A":1,"a b":2,"":3,"n":1.50}`, `{"constraints":{"n":1.5}}`, 3},
		"a secret name":  {`{"sk_live_` + strings.Repeat("a1b2c3d4", 4) + `":1}`, `{"constraints":{}}`, 1},
		"a limited name": {`{"max_tokens":4096,"token_count":3,"` + strings.Repeat("n", 64) + `":true}`, `{"constraints":{"max_tokens":4096,"` + strings.Repeat("n", 64) + `":true,"token_count":3}}`, 0},
	} {
		g, dropped, err := execution.NewGrant(execution.GrantFields{Constraints: jsontext.Value(tc.in)})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if facts, _ := over(t, g, nil); string(facts) != tc.kept || dropped != tc.dropped {
			t.Errorf("%s: kept %s, dropped %d", name, facts, dropped)
		}
	}
	var many []string
	for i := range execution.MaxConstraints {
		many = append(many, fmt.Sprintf(`"c%d":%d`, i, i))
	}
	if _, _, err := execution.NewGrant(execution.GrantFields{Constraints: jsontext.Value(`{` + strings.Join(many, ",") + `,"x":[]}`)}); err != nil {
		t.Errorf("32 constraints: %v", err)
	}
	for name, in := range map[string]string{
		"33": `{` + strings.Join(many, ",") + `,"x":1}`, "a list": `[]`, "a text": `"x"`, "prose": `{"note":"two words"}`, "a token": `{"note":"` + secret + `"}`,
		"a password by its name": `{"password":"swordfish"}`, "a number too": `{"api_key":123456}`, "a large number": `{"n":1e17}`,
	} {
		if _, _, err := execution.NewGrant(execution.GrantFields{Constraints: jsontext.Value(in)}); refusal.CodeOf(err) != refusal.InvalidRequest {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestARevokedGrantIsFinal(t *testing.T) {
	t.Parallel()
	active, _ := over(t, newGrant(t, grantFields()), nil)
	if facts, changed := over(t, newGrant(t, grantFields()), active); changed || string(facts) != string(active) {
		t.Errorf("the same again: %s", facts)
	}
	renewed := grantFields()
	renewed.ExpiresAt, renewed.AllowedActions = ptr("2027-01-01T00:00:00Z"), nil
	if facts, changed := over(t, newGrant(t, renewed), active); !changed || strings.Contains(string(facts), "allowed_actions") {
		t.Errorf("not replaced as a whole: %s", facts)
	}
	for name, revoke := range map[string]func(*execution.GrantFields){
		"by status": func(f *execution.GrantFields) { f.Status = ptr("revoked") },
		"by time":   func(f *execution.GrantFields) { f.RevokedAt = ptr("2026-06-08T10:00:00Z") },
	} {
		f := grantFields()
		revoke(&f)
		g := newGrant(t, f)
		revoked, changed := over(t, g, active)
		if !changed || !g.Final() {
			t.Errorf("%s: not revoked", name)
		}
		if _, changed := over(t, g, revoked); changed {
			t.Errorf("%s: the same again is a change", name)
		}
		for what, change := range map[string]func(*execution.GrantFields){
			"active again": func(f *execution.GrantFields) { *f = grantFields() }, "nothing": func(f *execution.GrantFields) { *f = execution.GrantFields{} },
			"who": func(f *execution.GrantFields) { f.RevokedBy = ptr("eve") }, "constraints": func(f *execution.GrantFields) { f.Constraints = nil },
		} {
			f := f
			change(&f)
			if _, changed, err := newGrant(t, f).Over(revoked); refusal.CodeOf(err) != refusal.RunConflict || changed {
				t.Errorf("%s, %s: got %v", name, what, err)
			}
		}
	}
}

func TestGrantsAreRefused(t *testing.T) {
	t.Parallel()
	broken := map[string]func(*execution.GrantFields){
		"too many actions": func(f *execution.GrantFields) { f.AllowedActions = strings.Split(strings.Repeat("a ", 64)+"a", " ") },
		"a time":           func(f *execution.GrantFields) { f.CreatedAt = ptr("now") },
		"an end":           func(f *execution.GrantFields) { f.ExpiresAt = ptr("") },
		"a revocation":     func(f *execution.GrantFields) { f.RevokedAt = ptr("soon") },
		"half a reference": func(f *execution.GrantFields) { f.SecretRef = ptr("azkv://vault") },
		"a value":          func(f *execution.GrantFields) { f.SecretRef = ptr("hunter2") },
	}
	for what, name := range unnamed() {
		value, err := json.Marshal(map[string]string{"note": name})
		if err != nil {
			t.Fatal(err)
		}
		broken["secret "+what] = func(f *execution.GrantFields) { f.SecretRef = &name }
		broken["action "+what] = func(f *execution.GrantFields) { f.AllowedActions = []string{"read", name} }
		broken["constraint "+what] = func(f *execution.GrantFields) { f.Constraints = value }
		broken["status "+what] = func(f *execution.GrantFields) { f.Status = &name }
		broken["creator "+what] = func(f *execution.GrantFields) { f.CreatedBy = &name }
		broken["revoker "+what] = func(f *execution.GrantFields) { f.RevokedBy = &name }
	}
	for name, breaks := range broken {
		f := grantFields()
		breaks(&f)
		if _, _, err := execution.NewGrant(f); refusal.CodeOf(err) != refusal.InvalidRequest {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
