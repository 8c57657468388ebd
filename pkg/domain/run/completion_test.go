package run_test

import (
	"crypto/sha256"
	"strings"
	"testing"

	"verbatim.internal/pkg/domain/refusal"
	"verbatim.internal/pkg/domain/run"
)

func TestACompletionKeepsMetadataAndHashes(t *testing.T) {
	t.Parallel()
	c, err := run.NewCompletion(completionFields())
	if err != nil {
		t.Fatal(err)
	}
	const usage = `{"cost_usd":0.0125,"input_tokens":1200,"output_tokens":9007199254740991}`
	if string(c.Usage) != usage || c.Model != "vendor/model-4.5@2026" || c.Runtime != "agent:1.2" || c.Status != run.Completed {
		t.Errorf("got %+v", c)
	}
	const whole = `{"assistant_message_id":"answer-1","content":"Three orders are late.","model":"vendor/model-4.5@2026",` +
		`"runtime":"agent:1.2","status":"completed","usage":` + usage + `}`
	if c.RequestHash != sha256.Sum256([]byte(whole)) || c.ContentHash != sha256.Sum256([]byte("Three orders are late.")) {
		t.Error("a hash is another")
	}
}

func TestACompletionMayLeaveOutWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	for _, status := range []string{"failed", "cancelled"} {
		c, err := run.NewCompletion(run.CompletionFields{AssistantMessageID: "a", Status: status, Content: ptr("")})
		if err != nil || c.Model != "" || c.Runtime != "" || c.Usage != nil || c.ContentHash != sha256.Sum256(nil) {
			t.Errorf("%s: got %+v, %v", status, c, err)
		}
	}
	f := completionFields()
	f.Usage = &run.Usage{}
	if c, err := run.NewCompletion(f); err != nil || string(c.Usage) != `{}` {
		t.Errorf("an empty usage: got %s, %v", c.Usage, err)
	}
}

func TestEveryPartOfACompletionIsPartOfItsRequest(t *testing.T) {
	t.Parallel()
	first, err := run.NewCompletion(completionFields())
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*run.CompletionFields){
		"assistant_message_id": func(f *run.CompletionFields) { f.AssistantMessageID = "answer-2" },
		"status":               func(f *run.CompletionFields) { f.Status = "failed" },
		"content":              func(f *run.CompletionFields) { f.Content = ptr(*f.Content + " ") },
		"model":                func(f *run.CompletionFields) { f.Model = ptr("other") },
		"no model":             func(f *run.CompletionFields) { f.Model = nil },
		"runtime":              func(f *run.CompletionFields) { f.Runtime = nil },
		"no usage":             func(f *run.CompletionFields) { f.Usage = nil },
		"input_tokens":         func(f *run.CompletionFields) { f.Usage.InputTokens = ptr(int64(1)) },
		"cached_input_tokens":  func(f *run.CompletionFields) { f.Usage.CachedInputTokens = ptr(int64(0)) },
		"output_tokens":        func(f *run.CompletionFields) { f.Usage.OutputTokens = nil },
		"total_tokens":         func(f *run.CompletionFields) { f.Usage.TotalTokens = ptr(int64(7)) },
		"tool_calls":           func(f *run.CompletionFields) { f.Usage.ToolCalls = ptr(int64(7)) },
		"cost_usd":             func(f *run.CompletionFields) { f.Usage.CostUSD = ptr(0.0) },
	} {
		f := completionFields()
		change(&f)
		other, err := run.NewCompletion(f)
		if err != nil || other.RequestHash == first.RequestHash {
			t.Errorf("%s: taken for the same request, %v", name, err)
		}
	}
}

func TestCompletionsAreRefused(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*run.CompletionFields){
		"no message id":            func(f *run.CompletionFields) { f.AssistantMessageID = "" },
		"a blank in a message id":  func(f *run.CompletionFields) { f.AssistantMessageID = "a b" },
		"no status":                func(f *run.CompletionFields) { f.Status = "" },
		"another status":           func(f *run.CompletionFields) { f.Status = "running" },
		"no content":               func(f *run.CompletionFields) { f.Content = nil },
		"an empty content":         func(f *run.CompletionFields) { f.Content = ptr("") },
		"a blank content":          func(f *run.CompletionFields) { f.Content, f.Status = ptr(" \n"), "failed" },
		"a control character":      func(f *run.CompletionFields) { f.Content, f.Status = ptr("\x1b[0m"), "failed" },
		"an empty model":           func(f *run.CompletionFields) { f.Model = ptr("") },
		"a model that is a text":   func(f *run.CompletionFields) { f.Model = ptr("the best one") },
		"a model beyond its limit": func(f *run.CompletionFields) { f.Model = ptr(strings.Repeat("m", 129)) },
		"a model that is a secret": func(f *run.CompletionFields) { f.Model = ptr(secret) },
		"a runtime with a dot":     func(f *run.CompletionFields) { f.Runtime = ptr(".net") },
		"a runtime with a secret":  func(f *run.CompletionFields) { f.Runtime = ptr("x/" + secret) },
		"negative tokens":          func(f *run.CompletionFields) { f.Usage.TotalTokens = ptr(int64(-1)) },
		"tokens beyond 2^53-1":     func(f *run.CompletionFields) { f.Usage.ToolCalls = ptr(int64(run.MaxSafeInteger + 1)) },
		"a negative cost":          func(f *run.CompletionFields) { f.Usage.CostUSD = ptr(-0.01) },
		"a cost beyond its limit":  func(f *run.CompletionFields) { f.Usage.CostUSD = ptr(1.1e12) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := completionFields()
			change(&f)
			_, err := run.NewCompletion(f)
			wantCode(t, err, refusal.InvalidRequest)
		})
	}
}

func TestACompletionIsJudgedByWhatIsStored(t *testing.T) {
	t.Parallel()
	c, err := run.NewCompletion(completionFields())
	if err != nil {
		t.Fatal(err)
	}
	same, other := c.RequestHash, sha256.Sum256([]byte("other"))
	for name, tc := range map[string]struct {
		history run.CompletionHistory
		replay  bool
		want    refusal.Code
	}{
		"nothing is stored":              {run.CompletionHistory{}, false, ""},
		"the same is stored":             {run.CompletionHistory{Stored: &same}, true, ""},
		"another is stored":              {run.CompletionHistory{Stored: &other}, false, refusal.RunCompletionConflict},
		"the message is used":            {run.CompletionHistory{MessageUsed: true}, false, refusal.AssistantMessageConflict},
		"another, and a message is used": {run.CompletionHistory{Stored: &other, MessageUsed: true}, false, refusal.RunCompletionConflict},
	} {
		replay, err := c.Complete(tc.history)
		if replay != tc.replay || refusal.CodeOf(err) != tc.want {
			t.Errorf("%s: got %v, %v", name, replay, err)
		}
	}
}
