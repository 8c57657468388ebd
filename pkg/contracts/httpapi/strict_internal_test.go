package httpapi

import (
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

func TestParseIntegralIsExact(t *testing.T) {
	t.Parallel()
	zeros := strings.Repeat("0", 100)
	for in, want := range map[string]int64{
		"0": 0, "-0": 0, "0.0": 0, "0e999999999999999999999": 0, "0E-400": 0, "-0.00e5": 0,
		"1": 1, "1.0": 1, "1e0": 1, "1E+0": 1, "1e-0": 1, "10e-1": 1, "0.1e1": 1, "-1": -1, "-10.0e-1": -1,
		"20000": 20_000, "2e4": 20_000, "2E+4": 20_000, "200000.0e-1": 20_000, "1e00000000000000000000000000000001": 10,
		"9007199254740991": 1<<53 - 1, "-9007199254740991": -(1<<53 - 1), "9.007199254740991e15": 1<<53 - 1, "9007199254740990": 1<<53 - 2,
		"3." + zeros: 3, "3" + zeros + "e-100": 3, "0." + zeros + "3e101": 3, "0." + zeros + "12e102": 12,
	} {
		if got, ok := parseIntegral(in); !ok || got != want {
			t.Errorf("%s: got %d, %v; want %d", in, got, ok, want)
		}
	}
	for _, in := range []string{
		"0.5", "1.5", "-0.1", "1e-1", "12e-1", "3." + zeros + "1", "3" + zeros + "e-101", "1e-999999999999999999999", "1e-4294967297",
		"9007199254740992", "-9007199254740992", "9007199254740993", "10000000000000000", "1e16", "1e999999999999999999999", "1e4294967297",
		"9223372036854775807", "9223372036854775808", "18446744073709551617", "1" + zeros, "9007199254740991.5",
	} {
		if got, ok := parseIntegral(in); ok {
			t.Errorf("%s: accepted as %d", in, got)
		}
	}
}

var numberRule = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE]([+-]?[0-9]+))?$`)

// FuzzParseIntegral compares with math/big over all JSON numbers whose exponent big can bear.
func FuzzParseIntegral(f *testing.F) {
	for _, in := range []string{"3", "3.0", "30e-1", "0.3E+1", "-0.0", "9007199254740991", "9007199254740992", "1e16", "90071992547409910e-1", "0e99"} {
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, in string) {
		parts := numberRule.FindStringSubmatch(in)
		if parts == nil || len(in) > 1000 {
			return
		}
		if e, err := strconv.Atoi(parts[4]); parts[4] != "" && (err != nil || e > 1000 || e < -1000) {
			return
		}
		exact, ok := new(big.Rat).SetString(in)
		if !ok {
			t.Fatalf("%s is no number to math/big", in)
		}
		limit := new(big.Int).Lsh(big.NewInt(1), 53)
		want := exact.IsInt() && exact.Num().CmpAbs(limit) < 0
		got, ok := parseIntegral(in)
		if ok != want || ok && exact.Cmp(new(big.Rat).SetInt64(got)) != 0 {
			t.Errorf("%s: got %d, %v", in, got, ok)
		}
	})
}

// FuzzHasNull compares with the plain rule: a null is what says so outside of texts.
func FuzzHasNull(f *testing.F) {
	for _, in := range []string{`{"a":null}`, `{"null":"null"}`, `[[null]]`, `"\"null"`, `{"a":"\\","b":null}`} {
		f.Add([]byte(in))
	}
	texts := regexp.MustCompile(`"(\\.|[^"\\])*"`)
	f.Fuzz(func(t *testing.T, data []byte) {
		if !jsontext.Value(data).IsValid() {
			return
		}
		if want := strings.Contains(texts.ReplaceAllString(string(data), `""`), "null"); hasNull(data) != want {
			t.Errorf("%q: has a null is %v", data, !want)
		}
	})
}
