package httpapi

import (
	"bytes"
	"errors"
	"io"
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
func Decode(data []byte, v any) error {
	if err := json.Unmarshal(data, v, json.RejectUnknownMembers(true)); err != nil || hasNull(data) {
		return ErrInvalid
	}
	return nil
}

// hasNull reports whether valid JSON holds a null: json.Unmarshal would take it
// for an absent field.
func hasNull(data []byte) bool {
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
	}
}

// maxNumber bounds the digits that a sequence may be written with.
const maxNumber = 64

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
// most 2^53-1 in magnitude.
func parseIntegral(s string) (int64, bool) {
	const maxSafe = 1<<53 - 1
	if len(s) > maxNumber {
		return 0, false
	}
	mantissa, exponent := s, 0
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		var err error
		if exponent, err = strconv.Atoi(s[i+1:]); err != nil || exponent > maxNumber || exponent < -maxNumber {
			return 0, false
		}
		mantissa = s[:i]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := whole + fraction
	exponent -= len(fraction)
	for exponent < 0 && strings.HasSuffix(digits, "0") && len(digits) > 1 {
		digits, exponent = digits[:len(digits)-1], exponent+1
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0, false
	}
	if n == 0 {
		return 0, true
	}
	if exponent < 0 {
		return 0, false
	}
	for ; exponent > 0; exponent-- {
		if n > maxSafe/10 || n < -maxSafe/10 {
			return 0, false
		}
		n *= 10
	}
	return n, n <= maxSafe && n >= -maxSafe
}
