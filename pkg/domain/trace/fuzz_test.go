package trace_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"verbatim.internal/pkg/domain/trace"
)

// FuzzResultOf compares with the words of the contract, read word for word.
func FuzzResultOf(f *testing.F) {
	for _, seed := range []string{
		"task.completed", "task.failed", "task.blocked", "task.stopped", "approval.rejected", "approval.approved", "x.approval.rejected",
		"a.b.c.completed", "completed", ".", "", "task.completed.", "TASK.COMPLETED",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, eventType string) {
		parts := strings.Split(eventType, ".")
		want := trace.Info
		if i := slices.Index([]string{"completed", "failed", "blocked", "stopped"}, parts[len(parts)-1]); i >= 0 {
			want = []trace.Result{trace.Success, trace.Failed, trace.Blocked, trace.Stopped}[i]
		} else if slices.Equal(parts, []string{"approval", "rejected"}) {
			want = trace.Blocked
		}
		if got := trace.ResultOf(eventType); got != want {
			t.Fatalf("%q: got %s, want %s", eventType, got, want)
		}
	})
}

// FuzzAppendJSON gives every place of a record any bytes, or none.
func FuzzAppendJSON(f *testing.F) {
	f.Add(int64(1), "2026-06-08T09:00:00Z", "task.completed", "impl", "agent-7", "t-2", "gpt-x", int64(2), "ap-1", "approved", uint8(0))
	f.Add(int64(1_000_000), "", "\xff", "é😀\u2028<&>", "\x00\n\"\\", "\xed\xa0\x80", "\U0010ffff", int64(-1), "\u007f", "pending", uint8(0))
	f.Add(int64(-5), "", "", "", "", "", "", int64(0), "", "", uint8(0xff))
	f.Fuzz(func(t *testing.T, ordinal int64, at, action, role, instance, task, model string, count int64, approval, decision string, missing uint8) {
		optional := func(bit int, s string) *string {
			if missing>>bit&1 == 1 {
				return nil
			}
			return &s
		}
		r := trace.Record{
			AuditID: trace.AuditID(ordinal), OccurredAt: at, Action: action, Result: trace.ResultOf(action),
			Actor: trace.Actor{AgentRole: optional(0, role), AgentInstanceID: optional(1, instance)}, TaskID: optional(2, task),
			Lineage:  trace.Lineage{ManagerDeploymentID: optional(3, task), SwarmID: optional(4, model), CorrelationID: optional(5, role)},
			Redacted: missing == 0,
		}
		if missing>>6&1 == 0 {
			r.Model, r.Tool = &trace.Model{ModelID: model}, &trace.Tool{Count: count}
		}
		if missing>>7 == 0 {
			r.Approval = &trace.Approval{ApprovalID: approval}
			if decision != "" {
				r.Approval.Decision = new(trace.Decision(decision))
			}
		}
		got := trace.AppendJSON(nil, r)
		want, err := json.Marshal(r, jsontext.AllowInvalidUTF8(true))
		if err != nil || !bytes.Equal(got, want) || !jsontext.Value(got).IsValid() || !utf8.Valid(got) || bytes.ContainsRune(got, '\n') {
			t.Fatalf("got  %s\nwant %s, %v", got, want, err)
		}
		var back trace.Record
		switch err := json.Unmarshal(got, &back); {
		case ordinal < 1:
			if err == nil {
				t.Fatalf("the ordinal of %s was read", got)
			}
		case err != nil:
			t.Fatalf("%s: %v", got, err)
		default:
			if again := trace.AppendJSON(nil, back); !bytes.Equal(again, got) {
				t.Fatalf("%s was read as %s", got, again)
			}
		}
		if line := trace.Line(r); !strings.HasPrefix(line, r.AuditID.String()+" ") || !strings.HasSuffix(line, " -> "+string(r.Result)) {
			t.Fatalf("the line is %q", line)
		}
	})
}
