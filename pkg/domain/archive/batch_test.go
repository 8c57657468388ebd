package archive_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"verbatim.internal/pkg/domain/archive"
	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/pkg/domain/refusal"
)

// message returns a valid message of n bytes.
func message(n int) archive.Fields {
	f := fieldsOf(archive.UserMessage)
	f.Content = ptr(strings.Repeat("a", n))
	return f
}

func TestBatchLimitsAndTheirPrecedence(t *testing.T) {
	t.Parallel()
	const ok, bad, limit = refusal.Code(""), refusal.InvalidRequest, refusal.Limit
	repeat := func(n int, f archive.Fields) []archive.Fields {
		fields := make([]archive.Fields, n)
		for i := range fields {
			fields[i] = f
		}
		return fields
	}
	high, broken := fieldsOf(archive.TurnStart), fieldsOf(archive.TurnStart)
	high.Sequence = 20_001
	broken.Sequence = 0
	full := append(repeat(4, message(64_000)), message(256<<10-4*64_000))
	for name, tc := range map[string]struct {
		fields []archive.Fields
		want   refusal.Code
	}{
		"none":                           {nil, bad},
		"none, but a list":               {[]archive.Fields{}, bad},
		"50 events":                      {repeat(50, fieldsOf(archive.TurnStart)), ok},
		"51 events":                      {repeat(51, fieldsOf(archive.TurnStart)), bad},
		"51 events and too high":         {repeat(51, high), bad},
		"256 KiB":                        {full, ok},
		"a byte more":                    {append(full[:5:5], message(1)), limit},
		"256 KiB in UTF-8, fewer units":  {repeat(2, euros(50_000)), limit},
		"within 256 KiB of UTF-8":        {[]archive.Fields{euros(64_000), message(64_000)}, ok},
		"too high":                       {[]archive.Fields{high}, limit},
		"too high, then broken":          {[]archive.Fields{high, broken}, bad},
		"broken, then too high":          {[]archive.Fields{broken, high}, bad},
		"too much text, then broken":     {append(repeat(5, message(64_000)), broken), bad},
		"too much text and too high":     {append(repeat(5, message(64_000)), high), limit},
		"an order that append looks at":  {repeat(2, fieldsOf(archive.TurnStart)), ok},
		"a lone broken event at the end": {append(repeat(49, fieldsOf(archive.TurnEnd)), broken), bad},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantCode(t, tc.want, tc.fields...)
		})
	}
}

func euros(n int) archive.Fields {
	f := fieldsOf(archive.AssistantMessage)
	f.Content = ptr(strings.Repeat("€", n))
	return f
}

// A refusal must not quote what was sent.
func TestRefusalsOfABatchQuoteNothing(t *testing.T) {
	t.Parallel()
	const secret = "s3cret"
	for _, change := range []func(*archive.Fields){
		func(f *archive.Fields) { f.EventID = secret + "!" },
		func(f *archive.Fields) { f.Kind = secret },
		func(f *archive.Fields) { f.Content = ptr(secret + "\x00") },
		func(f *archive.Fields) { f.Status = ptr(secret) },
	} {
		f := message(1)
		change(&f)
		if _, err := archive.NewBatch([]archive.Fields{f}); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("got %v", err)
		}
	}
}

func FuzzNewBatch(f *testing.F) {
	f.Add("e-1", int64(1), "t-1", "turn_start", "", "", "", "", uint8(0), uint8(1))
	f.Add("e-1", int64(2), "t-1", "user_message", "text\n😀", "", "", "", uint8(1), uint8(2))
	f.Add("e-1", int64(20_001), "t-1", "turn_end", "", "completed", "", "", uint8(2), uint8(50))
	f.Add("e-1", int64(4), "t-1", "run_link", "", "", strings.ToUpper(runID), string(sessionA), uint8(12), uint8(3))
	f.Fuzz(func(t *testing.T, eventID string, sequence int64, turn, kind, content, status, run, member string, present, n uint8) {
		in := archive.Fields{EventID: eventID, Sequence: sequence, ClientTurnID: turn, Kind: kind}
		for bit, p := range []**string{&in.Content, &in.Status, &in.RunID, &in.MemberSessionID} {
			if present&(1<<bit) != 0 {
				*p = []*string{&content, &status, &run, &member}[bit]
			}
		}
		fields := make([]archive.Fields, n)
		for i := range fields {
			fields[i] = in
		}
		batch, err := archive.NewBatch(fields)
		switch code := refusal.CodeOf(err); {
		case err == nil:
			if len(batch) != int(n) || n < 1 || n > 50 {
				t.Fatalf("%d events became %d", n, len(batch))
			}
			for _, e := range batch {
				wantInvariants(t, in, e)
			}
		case batch != nil || code != refusal.InvalidRequest && code != refusal.Limit:
			t.Errorf("refused with %v and %d events", err, len(batch))
		}
	})
}

// wantInvariants checks what every accepted event promises the rest of the system.
func wantInvariants(t *testing.T, in archive.Fields, e archive.Event) {
	t.Helper()
	isMessage := e.Kind == archive.UserMessage || e.Kind == archive.AssistantMessage
	isLink := e.Kind == archive.RunLink
	if e.EventID != in.EventID || e.ClientTurnID != in.ClientTurnID || string(e.Kind) != in.Kind || int64(e.Sequence) != in.Sequence {
		t.Errorf("%+v became %+v", in, e)
	}
	if !archive.IsIdentifier(e.EventID) || !archive.IsIdentifier(e.ClientTurnID) || e.Sequence < 1 || e.Sequence > 20_000 {
		t.Errorf("accepted %+v", e)
	}
	if isMessage != (in.Content != nil) || isMessage != (e.Content != "") || isMessage && e.Content != *in.Content || !utf8.ValidString(e.Content) {
		t.Errorf("content: %+v", e)
	}
	ended := e.Status == archive.Completed || e.Status == archive.Failed || e.Status == archive.Cancelled
	if ended != (e.Kind == archive.TurnEnd) || !ended && e.Status != archive.NoTurn {
		t.Errorf("status: %+v", e)
	}
	for _, id := range []identity.UUID{e.RunID, e.MemberSessionID} {
		if own, ok := identity.ParseUUID(string(id)); ok != isLink || ok && own != id {
			t.Errorf("run link: %+v", e)
		}
	}
	if e.ThreadID != 0 || !e.CreatedAt.IsZero() || !e.SameBody(e) {
		t.Errorf("the server's fields: %+v", e)
	}
}
