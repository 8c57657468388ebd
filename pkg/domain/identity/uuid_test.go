package identity_test

import (
	"regexp"
	"strings"
	"testing"

	"verbatim.internal/pkg/domain/identity"
)

var uuidPattern = regexp.MustCompile(`^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-5][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}$`)

func TestUUIDsAreReadInAnyCaseAndKeptLower(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		"123e4567-e89b-12d3-8456-426614174001",
		"123e4567-e89b-22d3-9456-426614174001",
		"123e4567-e89b-32d3-a456-426614174001",
		"123e4567-e89b-42d3-b456-426614174001",
		"123e4567-e89b-52d3-A456-426614174001",
		"123E4567-E89B-42D3-B456-42661417400F",
		"00000000-0000-1000-8000-000000000000",
		"ffffffff-ffff-5fff-bfff-ffffffffffff",
	} {
		if got, ok := identity.ParseUUID(in); !ok || string(got) != strings.ToLower(in) {
			t.Errorf("%s: got %q, %v", in, got, ok)
		}
	}
}

func TestOtherShapesAreNoUUIDs(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]string{
		"empty":             "",
		"nil UUID":          "00000000-0000-0000-0000-000000000000",
		"version 0":         "123e4567-e89b-02d3-a456-426614174001",
		"version 6":         "123e4567-e89b-62d3-a456-426614174001",
		"version 7":         "123e4567-e89b-72d3-a456-426614174001",
		"variant 7":         "123e4567-e89b-42d3-7456-426614174001",
		"variant c":         "123e4567-e89b-42d3-c456-426614174001",
		"variant upper C":   "123e4567-e89b-42d3-C456-426614174001",
		"braces":            "{123e4567-e89b-42d3-a456-426614174001}",
		"urn":               "urn:uuid:123e4567-e89b-42d3-a456-426614174001",
		"no hyphens":        "123e4567e89b42d3a456426614174001",
		"hyphen elsewhere":  "123e456-7e89b-42d3-a456-426614174001",
		"underscore":        "123e4567_e89b-42d3-a456-426614174001",
		"a digit too few":   "123e4567-e89b-42d3-a456-42661417400",
		"a digit too many":  "123e4567-e89b-42d3-a456-4266141740011",
		"a letter g":        "g23e4567-e89b-42d3-a456-426614174001",
		"an upper G":        "G23e4567-e89b-42d3-a456-426614174001",
		"at sign":           "@23e4567-e89b-42d3-a456-426614174001",
		"colon":             ":23e4567-e89b-42d3-a456-426614174001",
		"space before":      " 23e4567-e89b-42d3-a456-426614174001",
		"newline at end":    "123e4567-e89b-42d3-a456-42661417400\n",
		"full-width digits": "１23e4567-e89b-42d3-a456-4266141740",
	} {
		if got, ok := identity.ParseUUID(in); ok || got != "" {
			t.Errorf("%s: accepted as %q", name, got)
		}
	}
}

func FuzzParseUUID(f *testing.F) {
	f.Add("123e4567-e89b-42d3-a456-426614174001")
	f.Add("123E4567-E89B-62D3-C456-42661417400G")
	f.Add("123e4567-e89b-42d3-a456-4266141740\xc3\xa9")
	f.Fuzz(func(t *testing.T, in string) {
		got, ok := identity.ParseUUID(in)
		if ok != uuidPattern.MatchString(in) {
			t.Fatalf("%q: accepted is %v", in, ok)
		}
		if !ok {
			return
		}
		if string(got) != strings.ToLower(in) {
			t.Errorf("%q became %q", in, got)
		}
		if again, ok := identity.ParseUUID(string(got)); !ok || again != got {
			t.Errorf("%q is not its own form", got)
		}
	})
}
