package kit

import (
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
)

// Match tells how got differs from want, or returns nil: each named member of an
// object must match, arrays match element by element, {"not": v} matches what
// differs from v, and everything else must be equal. Both are decoded JSON with
// json.Number for numbers.
func Match(want, got any) error { return match("$", want, got) }

func match(where string, want, got any) error {
	switch w := want.(type) {
	case map[string]any:
		if not, ok := w["not"]; ok && len(w) == 1 {
			if match(where, not, got) == nil {
				return fmt.Errorf("%s: is %v, and must not be", where, got)
			}
			return nil
		}
		g, ok := got.(map[string]any)
		if !ok {
			return fmt.Errorf("%s: is %T, want an object", where, got)
		}
		for name, member := range w {
			value, ok := g[name]
			if !ok {
				return fmt.Errorf("%s.%s: is absent", where, name)
			}
			if err := match(where+"."+name, member, value); err != nil {
				return err
			}
		}
		return nil
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return fmt.Errorf("%s: is %v, want %d elements", where, got, len(w))
		}
		for i := range w {
			if err := match(fmt.Sprintf("%s[%d]", where, i), w[i], g[i]); err != nil {
				return err
			}
		}
		return nil
	case json.Number:
		if g, ok := got.(json.Number); ok && sameNumber(w, g) {
			return nil
		}
	default:
		if reflect.DeepEqual(want, got) {
			return nil
		}
	}
	return fmt.Errorf("%s: is %v, want %v", where, got, want)
}

func sameNumber(a, b json.Number) bool {
	x, ok := new(big.Rat).SetString(a.String())
	if !ok {
		return false
	}
	y, ok := new(big.Rat).SetString(b.String())
	return ok && x.Cmp(y) == 0
}
