package execution_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"verbatim.internal/pkg/domain/execution"
	"verbatim.internal/pkg/domain/redact"
	"verbatim.internal/pkg/domain/refusal"
)

func approvalFields(decision string) execution.ApprovalFields {
	f := execution.ApprovalFields{
		Operation: ptr("git.push"), RiskLevel: ptr("high"), CredentialRef: ptr(vaultRef), LeaseID: ptr("lease-9"), Scope: ptr("repo:orders"),
		ExpiresAt: ptr("2026-06-09T00:00:00Z"), Reason: ptr("Checked with the team; password=hunter2 was rotated."), DecidedAt: ptr("2026-06-08T11:00:05+02:00"),
	}
	if decision != "" {
		f.Decision = &decision
	}
	return f
}

func newApproval(t *testing.T, f execution.ApprovalFields, by execution.Attribution) execution.Approval {
	t.Helper()
	a, err := execution.NewApproval(f, by)
	if err != nil {
		t.Fatalf("refused: %v", err)
	}
	return a
}

func over(t *testing.T, f execution.Fact, stored jsontext.Value) (jsontext.Value, bool) {
	t.Helper()
	facts, changed, err := f.Over(stored)
	if err != nil {
		t.Fatalf("refused: %v", err)
	}
	return facts, changed
}

func TestAnApprovalIsKeptWhole(t *testing.T) {
	t.Parallel()
	ada := execution.Attribution{UserID: "ada", ChannelID: "42", Role: "impl"}
	a := newApproval(t, approvalFields("approved"), ada)
	facts, changed := over(t, a, nil)
	const want = `{"credential_ref":"azkv://vault/orders-db","decided_at":"2026-06-08T09:00:05Z","decided_by":{"channel_id":"42","user_id":"ada"},` +
		`"decision":"approved","expires_at":"2026-06-09T00:00:00Z","lease_id":"lease-9","operation":"git.push",` +
		`"reason":"Checked with the team; password=[REDACTED] was rotated.","risk_level":"high","scope":"repo:orders"}`
	if string(facts) != want || !changed || !a.Final() {
		t.Errorf("got %s", facts)
	}
	undecided := newApproval(t, execution.ApprovalFields{Reason: ptr(" \n")}, ada)
	if facts, _ := over(t, undecided, nil); string(facts) != `{}` || undecided.Final() {
		t.Errorf("got %s", facts)
	}
}

func TestAnApprovalIsFrozenOnceDecided(t *testing.T) {
	t.Parallel()
	ada, bob := execution.Attribution{UserID: "ada"}, execution.Attribution{UserID: "bob"}
	open, _ := over(t, newApproval(t, execution.ApprovalFields{Operation: ptr("git.pull")}, ada), nil)
	if facts, changed := over(t, newApproval(t, execution.ApprovalFields{Operation: ptr("git.pull")}, bob), open); changed || string(facts) != string(open) {
		t.Errorf("the same again: %s", facts)
	}
	replaced, changed := over(t, newApproval(t, execution.ApprovalFields{RiskLevel: ptr("low")}, ada), open)
	if string(replaced) != `{"risk_level":"low"}` || !changed {
		t.Errorf("not replaced as a whole: %s", replaced)
	}
	decided, changed := over(t, newApproval(t, approvalFields("rejected"), ada), replaced)
	if !changed || !strings.Contains(string(decided), `"rejected"`) {
		t.Errorf("not decided: %s", decided)
	}
	if facts, changed := over(t, newApproval(t, approvalFields("rejected"), bob), decided); changed || string(facts) != string(decided) {
		t.Errorf("the same of somebody else: %s", facts)
	}
	for name, change := range map[string]func(*execution.ApprovalFields){
		"the other decision": func(f *execution.ApprovalFields) { f.Decision = ptr("approved") }, "none": func(f *execution.ApprovalFields) { f.Decision = nil },
		"another operation": func(f *execution.ApprovalFields) { f.Operation = ptr("git.pull") }, "no risk": func(f *execution.ApprovalFields) { f.RiskLevel = nil },
		"no credential": func(f *execution.ApprovalFields) { f.CredentialRef = nil }, "another lease": func(f *execution.ApprovalFields) { f.LeaseID = ptr("l") },
		"another scope": func(f *execution.ApprovalFields) { f.Scope = ptr("repo") }, "another end": func(f *execution.ApprovalFields) { f.ExpiresAt = nil },
		"another reason": func(f *execution.ApprovalFields) { f.Reason = ptr("no") }, "another time": func(f *execution.ApprovalFields) { f.DecidedAt = ptr("2026-06-08T09:00:06Z") },
	} {
		f := approvalFields("rejected")
		change(&f)
		_, changed, err := newApproval(t, f, ada).Over(decided)
		if refusal.CodeOf(err) != refusal.RunConflict || changed {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestApprovalsAreRefused(t *testing.T) {
	t.Parallel()
	broken := map[string]func(*execution.ApprovalFields){
		"another decision": func(f *execution.ApprovalFields) { f.Decision = ptr("maybe") }, "an empty one": func(f *execution.ApprovalFields) { f.Decision = ptr("") },
		"a long reason":       func(f *execution.ApprovalFields) { f.Reason = ptr(strings.Repeat("r", 513)) },
		"a reason that grows": func(f *execution.ApprovalFields) { f.Reason = ptr(strings.Repeat("password=hunter2 ", 30)) },
		"control characters":  func(f *execution.ApprovalFields) { f.Reason = ptr("a\x00b") }, "no UTF-8": func(f *execution.ApprovalFields) { f.Reason = ptr("\xff") },
		"a time": func(f *execution.ApprovalFields) { f.DecidedAt = ptr("now") }, "an end": func(f *execution.ApprovalFields) { f.ExpiresAt = ptr("") },
		"a name as reference": func(f *execution.ApprovalFields) { f.CredentialRef = ptr("vault/git") }, "half of one": func(f *execution.ApprovalFields) { f.CredentialRef = ptr("azkv://vault") },
	}
	for what, name := range unnamed() {
		broken["operation "+what] = func(f *execution.ApprovalFields) { f.Operation = &name }
		broken["risk "+what] = func(f *execution.ApprovalFields) { f.RiskLevel = &name }
		broken["credential "+what] = func(f *execution.ApprovalFields) { f.CredentialRef = &name }
		broken["lease "+what] = func(f *execution.ApprovalFields) { f.LeaseID = &name }
		broken["scope "+what] = func(f *execution.ApprovalFields) { f.Scope = &name }
	}
	for name, breaks := range broken {
		f := approvalFields("approved")
		breaks(&f)
		if _, err := execution.NewApproval(f, nobody); refusal.CodeOf(err) != refusal.InvalidRequest {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for _, reason := range []string{strings.Repeat("r", 512), strings.Repeat("é", 512), strings.Repeat("😀", 256), "tab\tline\r\n"} {
		f := approvalFields("approved")
		f.Reason = &reason
		if a, err := execution.NewApproval(f, nobody); err != nil || a.Reason != reason {
			t.Errorf("%.9q: %v", reason, err)
		}
	}
}

// Whatever the reason is, what is kept of it is short and holds no secret.
func TestReasonsAreRedacted(t *testing.T) {
	t.Parallel()
	pieces := rapid.OneOf(rapid.SampledFrom([]string{secret, "password=hunter2", "Bearer abcdef", "eyJ", " ", "\n", "=", ":", vaultRef, "ok"}), rapid.String())
	rapid.Check(t, func(t *rapid.T) {
		reason := strings.Join(rapid.SliceOfN(pieces, 0, 12).Draw(t, "reason"), "")
		a, err := execution.NewApproval(execution.ApprovalFields{Reason: &reason}, nobody)
		if err == nil && (redact.IsSecret(a.Reason) || len([]rune(a.Reason)) > execution.MaxReason || strings.Contains(a.Reason, secret)) {
			t.Fatalf("kept %q of %q", a.Reason, reason)
		}
	})
}
