package executionv1

import (
	"bytes"
	"regexp"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxFactsBytes is more than any facts or payload can have: a task that names as many
// children and dependencies as it may.
const maxFactsBytes = 4 << 20

// maxFactsDepth is how deep facts are nested: a grant's constraints.
const maxFactsDepth = 2

// vaultPattern is the form of a reference to a secret, which may be longer than a name.
var vaultPattern = regexp.MustCompile(`^azkv://[A-Za-z0-9][A-Za-z0-9_.-]{0,126}/[A-Za-z0-9][A-Za-z0-9_.-]{0,126}$`)

// isFacts reports whether v is canonical JSON of an F whose strings are metadata. One member
// may be free: the reason of an approval, which is redacted text, and a host's name.
func isFacts[F any](v jsontext.Value, free string) bool {
	var facts F
	return isMetadata(v, maxFactsDepth, free) && json.Unmarshal(v, &facts, json.RejectUnknownMembers(true)) == nil
}

// isMetadata reports whether v is a JSON object in canonical form (RFC 8785), nested at
// most so deep, whose names are those of fields and whose strings are names, moments or
// references to a vault. No value is null, and that of the member free may be anything.
func isMetadata(v jsontext.Value, depth int, free string) bool {
	if len(v) == 0 || len(v) > maxFactsBytes || v[0] != '{' || !isCanonical(v) {
		return false
	}
	dec := jsontext.NewDecoder(bytes.NewReader(v))
	for {
		tok, err := dec.ReadToken()
		if err != nil {
			return true // the end: it is valid
		}
		if dec.StackDepth() > depth || tok.Kind() == jsontext.KindNull {
			return false
		}
		if tok.Kind() != jsontext.KindString {
			continue
		}
		s := tok.String()
		if in, n := dec.StackIndex(dec.StackDepth()); in == jsontext.KindBeginObject && n%2 == 1 {
			if !fieldPattern.MatchString(s) {
				return false
			}
			if s == free && dec.StackDepth() == 1 {
				if err := dec.SkipValue(); err != nil {
					return false
				}
			}
			continue
		}
		if !namePattern.MatchString(s) && !vaultPattern.MatchString(s) {
			return false
		}
	}
}

func isCanonical(v jsontext.Value) bool {
	canonical := v.Clone()
	return canonical.Canonicalize() == nil && bytes.Equal(canonical, v)
}
