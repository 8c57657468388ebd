package httpapi

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// ErrInvalid is a body that breaks its schema. It is deliberately without
// detail: what a decoder would say quotes the input.
var ErrInvalid = errors.New("the body is not one JSON object of the declared fields")

// Decode reads exactly one JSON value into v, strictly: UTF-8 without lone
// surrogate escapes, names case-sensitive, unique and declared, no null
// anywhere, no trailing data. Every failure is ErrInvalid. It is safe for
// concurrent use and keeps nothing of data.
func Decode(data []byte, v any) error { return decode(data, v) }

// decode is Decode, with nulls inside the members that free names: JSON pointers, in
// which * stands for any one step. Such a member itself is not null.
func decode(data []byte, v any, free ...string) error {
	if err := json.Unmarshal(data, v, json.RejectUnknownMembers(true)); err != nil || hasNull(data, free...) {
		return ErrInvalid
	}
	return nil
}

// hasNull reports whether valid JSON holds a null outside the free members:
// json.Unmarshal would take it for an absent field.
func hasNull(data []byte, free ...string) bool {
	if !bytes.Contains(data, []byte("null")) {
		return false
	}
	for dec := jsontext.NewDecoder(bytes.NewReader(data)); ; {
		tok, err := dec.ReadToken()
		if err != nil {
			return !errors.Is(err, io.EOF)
		}
		if tok.Kind() == jsontext.KindNull {
			return true
		}
		if isNameOf(dec, free) && dec.PeekKind() != jsontext.KindNull {
			if err := dec.SkipValue(); err != nil {
				return true
			}
		}
	}
}

// isNameOf reports whether the decoder has just read the name of one of the members.
func isNameOf(dec *jsontext.Decoder, members []string) bool {
	depth := dec.StackDepth()
	if kind, length := dec.StackIndex(depth); kind != jsontext.KindBeginObject || length%2 == 0 {
		return false // an odd length is a name whose value comes next
	}
	return slices.ContainsFunc(members, func(member string) bool {
		wanted := strings.Split(member[1:], "/")
		if depth != len(wanted) { // asked first: a pointer into the depths is long
			return false
		}
		steps := strings.Split(string(dec.StackPointer())[1:], "/")
		for i, step := range wanted {
			if step != "*" && step != steps[i] {
				return false
			}
		}
		return true
	})
}

// Sequence is a JSON number with an integral value of at most 2^53-1, however
// it is written: 3, 3.0 and 3e0 are the same. Zero and below decode, so that
// the rules can refuse them.
type Sequence int64

// UnmarshalJSONFrom reads the number; anything else is an error.
func (s *Sequence) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	if raw.Kind() != jsontext.KindNumber {
		return ErrInvalid
	}
	n, ok := parseIntegral(string(raw))
	if !ok {
		return ErrInvalid
	}
	*s = Sequence(n)
	return nil
}

// parseIntegral returns the value of a JSON number when it is an integer of at
// most 2^53-1 in magnitude. It is exact, in time linear in len(s).
func parseIntegral(s string) (int64, bool) {
	const (
		maxSafe     = 1<<53 - 1
		safeDigits  = 16
		maxExponent = 1 << 32 // beyond any number of digits in memory; sums of them fit an int64
	)
	mantissa, scale := s, "0"
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		mantissa, scale = s[:i], s[i+1:]
	}
	magnitude, negative := strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(magnitude, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return 0, true // whatever the exponent
	}
	exponent, err := strconv.ParseInt(scale, 10, 64)
	if err != nil || exponent > maxExponent || exponent < -maxExponent {
		return 0, false
	}
	significant := strings.TrimRight(digits, "0")
	zeros := exponent - int64(len(fraction)) + int64(len(digits)-len(significant))
	if zeros < 0 || int64(len(significant))+zeros > safeDigits {
		return 0, false
	}
	n, err := strconv.ParseInt(significant+strings.Repeat("0", int(zeros)), 10, 64)
	if err != nil || n > maxSafe {
		return 0, false
	}
	if negative {
		n = -n
	}
	return n, true
}
