package run_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"verbatim.internal/pkg/domain/run"
)

// occurredAt returns how a time is stored, and false when it is refused.
func occurredAt(s string) (string, bool) {
	f := traceFields("e")
	f.OccurredAt = s
	batch, err := run.NewTraceBatch([]run.TraceFields{f})
	if err != nil {
		return "", false
	}
	return batch[0].OccurredAt, true
}

func TestTimesAreStoredInUTCWithTheirDigits(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"2026-06-08T09:00:03Z":                "2026-06-08T09:00:03Z",
		"2026-06-08t09:00:03z":                "2026-06-08T09:00:03Z",
		"2026-06-08T09:00:03.1Z":              "2026-06-08T09:00:03.1Z",
		"2026-06-08T09:00:03.120Z":            "2026-06-08T09:00:03.120Z",
		"2026-06-08T09:00:03.000000000Z":      "2026-06-08T09:00:03.000000000Z",
		"2026-06-08T09:00:03.123456789-00:00": "2026-06-08T09:00:03.123456789Z",
		"2026-06-08T11:00:03+02:00":           "2026-06-08T09:00:03Z",
		"2026-12-31T23:30:00.5-05:45":         "2027-01-01T05:15:00.5Z",
		"2024-02-29T00:00:00+23:59":           "2024-02-28T00:01:00Z",
		"0001-01-01T00:00:00Z":                "0001-01-01T00:00:00Z",
		"9999-12-31T23:59:59.999999999Z":      "9999-12-31T23:59:59.999999999Z",
	} {
		if got, ok := occurredAt(in); !ok || got != want {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
	}
}

func TestTimesAreRefused(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		"", "2026-06-08", "2026-06-08T09:00:03", "2026-06-08 09:00:03Z", "2026-06-08T09:00Z", "2026-6-08T09:00:03Z",
		"2026-06-08T09:00:60Z", "2016-12-31T23:59:60Z", "2026-06-08T24:00:00Z", "2026-06-08T09:60:00Z",
		"2026-02-29T00:00:00Z", "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z", "2026-01-00T00:00:00Z", "2026-04-31T00:00:00Z",
		"2026-06-08T09:00:03.Z", "2026-06-08T09:00:03,1Z", "2026-06-08T09:00:03.1234567890Z", "2026-06-08T09:00:03.1",
		"2026-06-08T09:00:03+0200", "2026-06-08T09:00:03+2:00", "2026-06-08T09:00:03+24:00", "2026-06-08T09:00:03+02:60",
		"2026-06-08T09:00:03 Z", "2026-06-08T09:00:03Z ", " 2026-06-08T09:00:03Z", "+2026-06-08T09:00:03Z",
		"0000-01-01T00:00:00Z", "0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01", "1780909203", "２026-06-08T09:00:03Z", "2026-06-08T09:00:03.\xffZ",
	} {
		if got, ok := occurredAt(in); ok {
			t.Errorf("%q: accepted as %q", in, got)
		}
	}
}

// The standard library's reader, held to RFC 3339's grammar and to four digits of a year.
var timeRule = regexp.MustCompile(`^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

func FuzzOccurredAt(f *testing.F) {
	for _, s := range []string{
		"2026-06-08T09:00:03.120+02:00", "0000-01-01T00:00:00+00:01", "2024-02-29t23:59:59z", "2026-06-08T09:00:60Z",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, ok := occurredAt(s)
		want, err := time.Parse(time.RFC3339Nano, strings.ToUpper(s))
		known := err == nil && timeRule.MatchString(s) && want.UTC().Year() >= 1 && want.UTC().Year() <= 9999
		if ok != known {
			t.Fatalf("%q: accepted is %v", s, ok)
		}
		if !ok {
			return
		}
		back, err := time.Parse(time.RFC3339Nano, got)
		if err != nil || !back.Equal(want) || !strings.HasSuffix(got, "Z") {
			t.Fatalf("%q became %q, %v", s, got, err)
		}
		if fraction := timeRule.FindStringSubmatch(s)[1]; timeRule.FindStringSubmatch(got)[1] != fraction {
			t.Fatalf("%q became %q: its digits changed", s, got)
		}
		if again, ok := occurredAt(got); !ok || again != got {
			t.Fatalf("%q is not normal: %q", got, again)
		}
	})
}
