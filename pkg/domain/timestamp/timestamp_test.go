package timestamp_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"

	"verbatim.internal/pkg/domain/timestamp"
)

func ExampleNormalize() {
	fmt.Println(timestamp.Normalize("2026-06-08T17:00:00.120+08:00"))
	fmt.Println(timestamp.Normalize("2016-12-31T23:59:60Z"))
	// Output:
	// 2026-06-08T09:00:00.120Z true
	//  false
}

func TestMomentsHaveOneSpelling(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"2026-06-08T09:00:00Z":                "2026-06-08T09:00:00Z",
		"2026-06-08t09:00:00z":                "2026-06-08T09:00:00Z",
		"2026-06-08t09:00:00Z":                "2026-06-08T09:00:00Z",
		"2026-06-08T09:00:00.5z":              "2026-06-08T09:00:00.5Z",
		"2026-06-08T09:00:00+00:00":           "2026-06-08T09:00:00Z",
		"2026-06-08T09:00:00-00:00":           "2026-06-08T09:00:00Z",
		"2026-06-08T17:00:00.123456789+08:00": "2026-06-08T09:00:00.123456789Z",
		"2026-06-08T09:00:00.000000000Z":      "2026-06-08T09:00:00.000000000Z",
		"2026-06-08T09:00:00.500Z":            "2026-06-08T09:00:00.500Z",
		"2026-06-08T00:15:00.10+05:45":        "2026-06-07T18:30:00.10Z",
		"2026-06-08T23:59:59-23:59":           "2026-06-09T23:58:59Z",
		"2024-02-29T00:00:00Z":                "2024-02-29T00:00:00Z",
		"2000-02-29T23:00:00-01:00":           "2000-03-01T00:00:00Z",
		"2025-03-01T00:30:00+01:00":           "2025-02-28T23:30:00Z",
		"2026-01-01T00:00:00+00:01":           "2025-12-31T23:59:00Z",
		"0001-01-01T00:00:00Z":                "0001-01-01T00:00:00Z",
		"0000-12-31T23:30:00-01:00":           "0001-01-01T00:30:00Z",
		"9999-12-31T23:59:59.999999999Z":      "9999-12-31T23:59:59.999999999Z",
		"9999-12-31T23:59:59+00:01":           "9999-12-31T23:58:59Z",
	} {
		if got, ok := timestamp.Normalize(in); !ok || got != want {
			t.Errorf("%s: got %q, %t; want %s", in, got, ok, want)
		}
	}
}

func TestWhatIsNoMomentIsRefused(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		"", "Z", "2026-06-08", "2026-06-08T09:00:00", "2026-06-08T09:00Z", "2026-06-08 09:00:00Z", "20260608T090000Z",
		"2026-06-08T09:00:60Z", "2016-12-31T23:59:60Z", "2016-12-31T15:59:60-08:00", "2026-06-08T09:60:00Z", "2026-06-08T24:00:00Z",
		"2026-06-08T9:00:00Z", "2026-6-08T09:00:00Z", "+026-06-08T09:00:00Z", "2026-00-08T09:00:00Z", "2026-13-08T09:00:00Z",
		"2026-06-00T09:00:00Z", "2026-06-31T09:00:00Z", "2026-02-29T09:00:00Z", "1900-02-29T09:00:00Z", "2024-02-30T09:00:00Z",
		"2026-06-08T09:00:00.Z", "2026-06-08T09:00:00,5Z", "2026-06-08T09:00:00.1234567890Z", "2026-06-08T09:00:00.5",
		"2026-06-08T09:00:00.5x", "2026-06-08T09:00:00+8:00", "2026-06-08T09:00:00+0800", "2026-06-08T09:00:00+08",
		"2026-06-08T09:00:00+24:00", "2026-06-08T09:00:00+08:60", "2026-06-08T09:00:00 +08:00", "2026-06-08T09:00:00Z ",
		" 2026-06-08T09:00:00Z", "2026-06-08T09:00:00ZZ", "2026-06-08T09:00:00Z+00:00", "2026-06-08T09:00:00\u221208:00",
		"2026-06-08T09:00:00UTC", "12026-06-08T09:00:00Z", "２026-06-08T09:00:00Z", "2026-06-08T09:00:00.５Z",
		"0000-06-08T09:00:00Z", "0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01",
	} {
		if got, ok := timestamp.Normalize(in); ok || got != "" {
			t.Errorf("%s: accepted as %q", in, got)
		}
	}
}

func TestTheStoredSpellingIsNotCopied(t *testing.T) {
	t.Parallel()
	const stored = "2026-06-08T09:00:00.123456789Z"
	if got, _ := timestamp.Normalize(stored); unsafe.StringData(got) != unsafe.StringData(stored) {
		t.Errorf("%s is a copy", got)
	}
}

// Every moment, spelled with any offset and any number of digits, is itself.
func TestOffsetsNameTheSameMoment(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		utc := time.Unix(rapid.Int64Range(-62135596800, 253402300799).Draw(t, "second"), 0).UTC()
		digits := rapid.StringMatching(`(\.[0-9]{1,9})?`).Draw(t, "digits")
		minutes := rapid.IntRange(-23*60-59, 23*60+59).Draw(t, "offset")
		local := utc.In(time.FixedZone("", 60*minutes))
		if local.Year() < 0 || local.Year() > 9999 {
			return // four digits do not spell it
		}
		sent := local.Format("2006-01-02T15:04:05") + digits + local.Format("-07:00")
		want := utc.Format("2006-01-02T15:04:05") + digits + "Z"
		if got, ok := timestamp.Normalize(sent); !ok || got != want {
			t.Fatalf("%s: got %q, %t; want %s", sent, got, ok, want)
		}
	})
}

var normal = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?Z$`)

// FuzzNormalize compares with the standard library, which reads more than RFC
// 3339 but means the same by what both read.
func FuzzNormalize(f *testing.F) {
	for _, seed := range []string{
		"2026-06-08T17:00:00.123456789+08:00", "2026-06-08T09:00:60Z", "0000-12-31T23:30:00-01:00",
		"9999-12-31T23:59:59-00:01", "2026-06-08t09:00:00z", "2024-02-29T00:00:00,5Z", "2026-06-08T9:00:00Z", "",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, ok := timestamp.Normalize(s)
		sent, err := time.Parse(time.RFC3339Nano, strings.ToUpper(s))
		if !ok {
			strict := err == nil && normal.MatchString(s) && sent.Year() > 0
			if got != "" || strict {
				t.Fatalf("%q: refused with %q", s, got)
			}
			return
		}
		again, stable := timestamp.Normalize(got)
		if !stable || again != got || !normal.MatchString(got) {
			t.Fatalf("%q became %q, then %q", s, got, again)
		}
		stored, storedErr := time.Parse(time.RFC3339Nano, got)
		if err != nil || storedErr != nil || !stored.Equal(sent) {
			t.Fatalf("%q became %q: %v, %v", s, got, err, storedErr)
		}
	})
}
