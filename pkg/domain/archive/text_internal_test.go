package archive

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"
)

// trimmed lists what ECMAScript's trim removes: WhiteSpace (with every code
// point of category Zs) and LineTerminator.
var trimmed = []rune{
	0x9, 0xa, 0xb, 0xc, 0xd, 0x20, 0xa0, 0x1680,
	0x2000, 0x2001, 0x2002, 0x2003, 0x2004, 0x2005, 0x2006, 0x2007, 0x2008, 0x2009, 0x200a,
	0x2028, 0x2029, 0x202f, 0x205f, 0x3000, 0xfeff,
}

func TestTrimIsECMAScripts(t *testing.T) {
	t.Parallel()
	for r := rune(0); r <= utf8.MaxRune; r++ {
		if got := isTrimmed(r); got != slices.Contains(trimmed, r) {
			t.Errorf("%U: trimmed is %v", r, got)
		}
	}
}

func TestTexts(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text string
		ok   bool
	}{
		"empty":                        {"", false},
		"one letter":                   {"a", true},
		"all that is trimmed":          {strings.NewReplacer("\v", "", "\f", "").Replace(string(trimmed)), false},
		"a letter among what is":       {"\u3000\n a\ufeff", true},
		"zero width space alone":       {"\u200b", true},
		"mongolian separator alone":    {"\u180e", true},
		"next line alone":              {"\u0085", true},
		"word joiner alone":            {"\u2060", true},
		"braille blank alone":          {"\u2800", true},
		"tab, line feed, return":       {"a\tb\nc\r\nd", true},
		"a lone continuation byte":     {"a\x80", false},
		"a truncated character":        {"a\xe2\x82", false},
		"an overlong slash":            {"a\xc0\xaf", false},
		"a surrogate in UTF-8":         {"a\xed\xa0\x80", false},
		"beyond Unicode":               {"a\xf4\x90\x80\x80", false},
		"the replacement character":    {"\ufffd", true},
		"a noncharacter":               {"\uffff", true},
		"C1 controls":                  {"a\u0080\u009f", true},
		"bidirectional controls":       {"a\u202e\u2066b", true},
		"the last of Unicode":          {"\U0010ffff", true},
		"16 units":                     {strings.Repeat("a", 16), true},
		"17 units":                     {strings.Repeat("a", 17), false},
		"16 units of two bytes":        {strings.Repeat("é", 16), true},
		"17 units of two bytes":        {strings.Repeat("é", 17), false},
		"16 units of three bytes":      {strings.Repeat("€", 16), true},
		"17 units of three bytes":      {strings.Repeat("€", 17), false},
		"16 of the last before astral": {strings.Repeat("\uffff", 16), true},
		"8 of the first astral":        {strings.Repeat("\U00010000", 8), true},
		"8 of the first astral, one":   {strings.Repeat("\U00010000", 8) + "a", false},
		"8 astral characters":          {strings.Repeat("😀", 8), true},
		"8 astral characters and one":  {strings.Repeat("😀", 8) + "a", false},
		"9 astral characters":          {strings.Repeat("😀", 9), false},
		"7 astral and 2":               {strings.Repeat("😀", 7) + "aé", true},
		"trimmed ends count as length": {strings.Repeat(" ", 16) + "a", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := IsText(tc.text, 16); got != tc.ok {
				t.Errorf("a text is %v", got)
			}
		})
	}
}

func TestControlCharactersAreRefusedWhereverTheyStand(t *testing.T) {
	t.Parallel()
	for c := range byte(0x80) {
		allowed := c >= 0x20 && c != 0x7f || c == '\t' || c == '\n' || c == '\r'
		for _, text := range []string{string(c) + "ab", "a" + string(c) + "b", "ab" + string(c)} {
			if got := IsText(text, 16); got != allowed {
				t.Errorf("%U: a text is %v", c, got)
			}
		}
	}
}

var identifierPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}\z`)

func TestIdentifiers(t *testing.T) {
	t.Parallel()
	for _, in := range []string{"a", "z", "A", "Z", "0", "9", "az-AZ-09", "a_.:-", "9-", "A" + strings.Repeat(":", 127), "conversation-stable-id"} {
		if !IsIdentifier(in) {
			t.Errorf("%q: refused", in)
		}
	}
	for name, in := range map[string]string{
		"empty": "", "129 characters": "A" + strings.Repeat(":", 128), "hyphen first": "-a", "dot first": ".a", "colon first": ":a",
		"underscore first": "_a", "space": "a b", "slash": "a/b", "newline at the end": "a\n", "zero byte": "a\x00", "e acute": "é",
		"e acute inside": "aé", "full-width a": "ａ", "at sign": "a@", "bracket": "a[", "grave": "a`", "brace": "a{", "plus": "a+",
	} {
		if IsIdentifier(in) {
			t.Errorf("%s: accepted", name)
		}
	}
}

func FuzzIsIdentifier(f *testing.F) {
	f.Add("event-1")
	f.Add("a\n")
	f.Add(strings.Repeat("x", 129))
	f.Fuzz(func(t *testing.T, in string) {
		if got := IsIdentifier(in); got != identifierPattern.MatchString(in) {
			t.Errorf("%q: an identifier is %v", in, got)
		}
	})
}

// slowIsText says the rule once more, by the letter and without a short cut.
func slowIsText(s string, limit int) bool {
	if !utf8.ValidString(s) || len(utf16.Encode([]rune(s))) > limit {
		return false
	}
	visible := false
	for _, r := range s {
		switch {
		case r <= 0x8, r == 0xb, r == 0xc, 0xe <= r && r <= 0x1f, r == 0x7f:
			return false
		case !slices.Contains(trimmed, r):
			visible = true
		}
	}
	return visible
}

func FuzzIsText(f *testing.F) {
	f.Add("visible\ttext\r\n", uint16(128))
	f.Add("\u2003\ufeff\u3000", uint16(3))
	f.Add("😀😀", uint16(3))
	f.Add("a\xed\xa0\x80", uint16(9))
	f.Add("€€€", uint16(3))
	f.Add("\x7f", uint16(1))
	f.Fuzz(func(t *testing.T, s string, limit uint16) {
		if got := IsText(s, int(limit)); got != slowIsText(s, int(limit)) {
			t.Errorf("%q within %d: a text is %v", s, limit, got)
		}
	})
}

// Every byte at every place of a longer text is seen, and taken for what it is.
func TestControlsAreFoundWhereverTheyStand(t *testing.T) {
	t.Parallel()
	for at := range 20 {
		for c := range 256 {
			text := []byte(strings.Repeat("é–", 4))
			text[at] = byte(c)
			want := c < 0x20 && c != '\t' && c != '\n' && c != '\r' || c == 0x7f
			if got := hasControl(string(text)); got != want {
				t.Errorf("%#x at %d: %v", c, at, got)
			}
		}
	}
}
