package archive_test

import (
	"strings"
	"testing"
	"time"

	"verbatim.internal/pkg/domain/archive"
	"verbatim.internal/pkg/domain/refusal"
)

const runID = "223e4567-e89b-42d3-a456-426614174001"

// fieldsOf returns a valid event of each kind.
func fieldsOf(kind archive.Kind) archive.Fields {
	f := archive.Fields{EventID: "e:1", Sequence: 1, ClientTurnID: "turn.1", Kind: string(kind)}
	switch kind {
	case archive.UserMessage, archive.AssistantMessage:
		f.Content = ptr("Compare the two stores.")
	case archive.RunLink:
		f.RunID, f.MemberSessionID = ptr(runID), ptr(string(sessionA))
	case archive.TurnEnd:
		f.Status = ptr("completed")
	case archive.TurnStart:
	}
	return f
}

var kinds = []archive.Kind{archive.TurnStart, archive.UserMessage, archive.AssistantMessage, archive.RunLink, archive.TurnEnd}

func one(t *testing.T, f archive.Fields) archive.Event {
	t.Helper()
	batch, err := archive.NewBatch([]archive.Fields{f})
	if err != nil || len(batch) != 1 {
		t.Fatalf("got %d events, %v", len(batch), err)
	}
	return batch[0]
}

func TestEventsHaveTheFieldsOfTheirKind(t *testing.T) {
	t.Parallel()
	head := archive.Event{EventID: "e:1", Sequence: 1, ClientTurnID: "turn.1"}
	for _, kind := range kinds {
		want := head
		want.Kind = kind
		switch kind {
		case archive.UserMessage, archive.AssistantMessage:
			want.Content = "Compare the two stores."
		case archive.RunLink:
			want.RunID, want.MemberSessionID = runID, sessionA
		case archive.TurnEnd:
			want.Status = archive.Completed
		case archive.TurnStart:
		}
		if got := one(t, fieldsOf(kind)); got != want {
			t.Errorf("%s: got %+v", kind, got)
		}
	}
}

// Each kind takes exactly its own fields: one more or one less is refused.
func TestEventsWithOtherFieldsAreRefused(t *testing.T) {
	t.Parallel()
	field := map[string]func(*archive.Fields) **string{
		"content":           func(f *archive.Fields) **string { return &f.Content },
		"status":            func(f *archive.Fields) **string { return &f.Status },
		"run_id":            func(f *archive.Fields) **string { return &f.RunID },
		"member_session_id": func(f *archive.Fields) **string { return &f.MemberSessionID },
	}
	valid := map[string]string{
		"content": "text", "status": "completed", "run_id": runID, "member_session_id": string(sessionA),
	}
	for _, kind := range kinds {
		for name, at := range field {
			t.Run(string(kind)+" "+name, func(t *testing.T) {
				t.Parallel()
				f := fieldsOf(kind)
				if p := at(&f); *p == nil {
					*p = ptr(valid[name])
				} else {
					*p = nil
				}
				wantCode(t, refusal.InvalidRequest, f)
				f = fieldsOf(kind)
				*at(&f) = ptr("")
				wantCode(t, refusal.InvalidRequest, f)
			})
		}
	}
}

func wantCode(t *testing.T, want refusal.Code, fields ...archive.Fields) {
	t.Helper()
	batch, err := archive.NewBatch(fields)
	if refusal.CodeOf(err) != want || want != "" && batch != nil {
		t.Errorf("got %d events, %v; want %q", len(batch), err, want)
	}
}

func TestEventValues(t *testing.T) {
	t.Parallel()
	const ok, bad, limit = refusal.Code(""), refusal.InvalidRequest, refusal.Limit
	long := strings.Repeat("x", 128)
	for name, tc := range map[string]struct {
		kind   archive.Kind
		change func(*archive.Fields)
		want   refusal.Code
	}{
		"longest identifiers":    {archive.TurnStart, func(f *archive.Fields) { f.EventID, f.ClientTurnID = long, long }, ok},
		"long event id":          {archive.TurnStart, func(f *archive.Fields) { f.EventID = long + "x" }, bad},
		"long turn id":           {archive.TurnStart, func(f *archive.Fields) { f.ClientTurnID = long + "x" }, bad},
		"no event id":            {archive.TurnStart, func(f *archive.Fields) { f.EventID = "" }, bad},
		"no turn id":             {archive.TurnStart, func(f *archive.Fields) { f.ClientTurnID = "" }, bad},
		"sequence absent":        {archive.TurnStart, func(f *archive.Fields) { f.Sequence = 0 }, bad},
		"sequence negative":      {archive.TurnStart, func(f *archive.Fields) { f.Sequence = -1 }, bad},
		"highest sequence":       {archive.TurnStart, func(f *archive.Fields) { f.Sequence = 20_000 }, ok},
		"above it":               {archive.TurnStart, func(f *archive.Fields) { f.Sequence = 20_001 }, limit},
		"2^53-1":                 {archive.TurnStart, func(f *archive.Fields) { f.Sequence = 1<<53 - 1 }, limit},
		"2^53":                   {archive.TurnStart, func(f *archive.Fields) { f.Sequence = 1 << 53 }, bad},
		"2^32+1":                 {archive.TurnStart, func(f *archive.Fields) { f.Sequence = 1<<32 + 1 }, limit},
		"no kind":                {archive.TurnStart, func(f *archive.Fields) { f.Kind = "" }, bad},
		"another kind":           {archive.TurnStart, func(f *archive.Fields) { f.Kind = "tool_result" }, bad},
		"kind in upper case":     {archive.TurnStart, func(f *archive.Fields) { f.Kind = "TURN_START" }, bad},
		"status failed":          {archive.TurnEnd, func(f *archive.Fields) { f.Status = ptr("failed") }, ok},
		"status cancelled":       {archive.TurnEnd, func(f *archive.Fields) { f.Status = ptr("cancelled") }, ok},
		"status running":         {archive.TurnEnd, func(f *archive.Fields) { f.Status = ptr("running") }, bad},
		"status canceled":        {archive.TurnEnd, func(f *archive.Fields) { f.Status = ptr("canceled") }, bad},
		"status in upper case":   {archive.TurnEnd, func(f *archive.Fields) { f.Status = ptr("Completed") }, bad},
		"blank content":          {archive.UserMessage, func(f *archive.Fields) { f.Content = ptr(" \n\u3000\ufeff") }, bad},
		"control in content":     {archive.AssistantMessage, func(f *archive.Fields) { f.Content = ptr("a\x1b[0m") }, bad},
		"64,000 units":           {archive.UserMessage, func(f *archive.Fields) { f.Content = ptr(strings.Repeat("a", 64_000)) }, ok},
		"64,001 units":           {archive.UserMessage, func(f *archive.Fields) { f.Content = ptr(strings.Repeat("a", 64_001)) }, bad},
		"32,000 astral":          {archive.AssistantMessage, func(f *archive.Fields) { f.Content = ptr(strings.Repeat("😀", 32_000)) }, ok},
		"32,000 astral and one":  {archive.AssistantMessage, func(f *archive.Fields) { f.Content = ptr(strings.Repeat("😀", 32_000) + "a") }, bad},
		"64,000 of three bytes":  {archive.AssistantMessage, func(f *archive.Fields) { f.Content = ptr(strings.Repeat("€", 64_000)) }, ok},
		"64,001 of three bytes":  {archive.AssistantMessage, func(f *archive.Fields) { f.Content = ptr(strings.Repeat("€", 64_001)) }, bad},
		"run id in upper case":   {archive.RunLink, func(f *archive.Fields) { f.RunID = ptr(strings.ToUpper(runID)) }, ok},
		"run id that is none":    {archive.RunLink, func(f *archive.Fields) { f.RunID = ptr("run-1") }, bad},
		"member that is no UUID": {archive.RunLink, func(f *archive.Fields) { f.MemberSessionID = ptr("a") }, bad},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := fieldsOf(tc.kind)
			tc.change(&f)
			wantCode(t, tc.want, f)
		})
	}
}

func TestUUIDsOfRunLinksAreKeptLower(t *testing.T) {
	t.Parallel()
	f := fieldsOf(archive.RunLink)
	f.RunID, f.MemberSessionID = ptr(strings.ToUpper(runID)), ptr(strings.ToUpper(string(sessionB)))
	if e := one(t, f); e.RunID != runID || e.MemberSessionID != sessionB {
		t.Errorf("got %+v", e)
	}
}

func TestTextIsKeptByteForByte(t *testing.T) {
	t.Parallel()
	const text = "  \ufeffe\u0301 é\r\n\t😀\u200b<script>&\u2028 \ufffd "
	f := fieldsOf(archive.UserMessage)
	f.Content = ptr(text)
	if e := one(t, f); e.Content != text {
		t.Errorf("got %q", e.Content)
	}
}

// SameBody compares whatever was submitted, and nothing that the server adds.
func TestSameBody(t *testing.T) {
	t.Parallel()
	full := archive.Event{
		EventID: "e", Sequence: 1, ClientTurnID: "t", Kind: archive.RunLink, Content: "c", Status: archive.Failed,
		RunID: runID, MemberSessionID: sessionA, ThreadID: 7, CreatedAt: instant,
	}
	for name, tc := range map[string]struct {
		change func(*archive.Event)
		same   bool
	}{
		"nothing":   {func(*archive.Event) {}, true},
		"thread":    {func(e *archive.Event) { e.ThreadID = 0 }, true},
		"created":   {func(e *archive.Event) { e.CreatedAt = time.Time{} }, true},
		"event id":  {func(e *archive.Event) { e.EventID = "E" }, false},
		"sequence":  {func(e *archive.Event) { e.Sequence = 2 }, false},
		"turn":      {func(e *archive.Event) { e.ClientTurnID = "T" }, false},
		"kind":      {func(e *archive.Event) { e.Kind = archive.TurnEnd }, false},
		"content":   {func(e *archive.Event) { e.Content = "c " }, false},
		"status":    {func(e *archive.Event) { e.Status = archive.Cancelled }, false},
		"run":       {func(e *archive.Event) { e.RunID = sessionB }, false},
		"member":    {func(e *archive.Event) { e.MemberSessionID = sessionB }, false},
		"no member": {func(e *archive.Event) { e.MemberSessionID = "" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			other := full
			tc.change(&other)
			if full.SameBody(other) != tc.same || other.SameBody(full) != tc.same {
				t.Errorf("the same is %v", !tc.same)
			}
		})
	}
}
