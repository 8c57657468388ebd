package kit

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// eventualLimit is how long an `eventually` step may take.
const eventualLimit = 5 * time.Second

// Vectors is a file of black-box cases: steps against a fresh deployment whose
// registry is Registry.
type Vectors struct {
	About    string          `json:"about"`
	Base     string          `json:"base"`
	Registry json.RawMessage `json:"registry"`
	Cases    []VectorCase    `json:"cases"`
}

// VectorCase is one case: steps in order, which share the names that they save.
type VectorCase struct {
	Name  string       `json:"name"`
	Steps []VectorStep `json:"steps"`
}

// VectorStep is one exchange and what is expected of it.
type VectorStep struct {
	As         *string           `json:"as"` // a session's letter, an administrator's name, a bearer, or null
	Method     string            `json:"method"`
	Path       string            `json:"path"`
	Status     int               `json:"status"`
	Body       json.RawMessage   `json:"body"`
	Raw        json.RawMessage   `json:"raw"`
	RawHex     string            `json:"raw_hex"`
	Expect     json.RawMessage   `json:"expect"`
	Headers    map[string]string `json:"headers"`
	Save       map[string]string `json:"save"`
	Eventually bool              `json:"eventually"`
}

// ReadVectors reads a file strictly: a key that the runner does not know fails the
// test, so that no expectation is passed over in silence.
func ReadVectors(t *testing.T, path string) Vectors {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	var v Vectors
	require.NoError(t, dec.Decode(&v))
	require.NotEmpty(t, v.Cases)
	require.Equal(t, "http", v.Base, "this runner speaks HTTP")
	return v
}

// Run plays the case's steps against d.
func (c VectorCase) Run(t *testing.T, d *Deployment) {
	t.Helper()
	names := map[string]string{}
	for i, step := range c.Steps {
		where := fmt.Sprintf("step %d, %s %s", i+1, step.Method, step.Path)
		request := step.request(t, d, names)
		check := func() error {
			answer, err := d.endpoint(step.Path).Do(t.Context(), request)
			if err != nil {
				return err
			}
			return step.check(t, answer, names)
		}
		if step.Eventually {
			err := Until(t.Context(), eventualLimit, check)
			require.NoError(t, err, where)
		} else {
			require.NoError(t, check(), where)
		}
	}
}

func (s VectorStep) request(t *testing.T, d *Deployment, names map[string]string) Request {
	t.Helper()
	r := Request{Method: s.Method, Path: fill(s.Path, names)}
	if s.As != nil {
		r.Bearer = d.Bearer(*s.As)
	}
	var err error
	switch {
	case s.RawHex != "":
		r.Body, err = hex.DecodeString(s.RawHex)
		require.NoError(t, err)
	case s.Raw != nil:
		text, ok := describe(t, s.Raw, names).(string)
		require.True(t, ok, "raw describes no string")
		r.Body = []byte(text)
	case s.Body != nil:
		r.Body = JSON(describe(t, s.Body, names))
	}
	return r
}

func (s VectorStep) check(t *testing.T, answer Response, names map[string]string) error {
	t.Helper()
	if answer.Status != s.Status {
		return fmt.Errorf("status %d, want %d; body %.300s", answer.Status, s.Status, answer.Body)
	}
	for name, want := range s.Headers {
		if got := answer.Header.Get(name); got != want {
			return fmt.Errorf("header %s is %q, want %q", name, got, want)
		}
	}
	if s.Expect == nil && s.Save == nil {
		return nil
	}
	body, err := answer.JSON()
	if err != nil {
		return err
	}
	if s.Expect != nil {
		if err := Match(describe(t, s.Expect, names), body); err != nil {
			return err
		}
	}
	for name, member := range s.Save {
		object, _ := body.(map[string]any)
		value, ok := object[member].(string)
		if !ok {
			return fmt.Errorf("%s is no string to save", member)
		}
		names[name] = value
	}
	return nil
}

// describe decodes a value, fills in saved names, and makes the strings that
// {"$repeat": [text, n]} and {"$concat": [parts]} describe.
func describe(t *testing.T, raw json.RawMessage, names map[string]string) any {
	t.Helper()
	var value any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	require.NoError(t, dec.Decode(&value))
	described, err := expand(value, names)
	require.NoError(t, err)
	return described
}

func expand(value any, names map[string]string) (_ any, err error) {
	switch v := value.(type) {
	case string:
		return fill(v, names), nil
	case []any:
		for i := range v {
			if v[i], err = expand(v[i], names); err != nil {
				return nil, err
			}
		}
		return v, nil
	case map[string]any:
		for key := range v {
			if v[key], err = expand(v[key], names); err != nil {
				return nil, err
			}
		}
		if parts, ok := v["$repeat"].([]any); ok {
			return repeat(parts)
		}
		if parts, ok := v["$concat"].([]any); ok {
			return concat(parts)
		}
	}
	return value, nil
}

func repeat(parts []any) (string, error) {
	if len(parts) == 2 {
		text, isText := parts[0].(string)
		count, isCount := parts[1].(json.Number)
		if n, err := count.Int64(); isText && isCount && err == nil {
			return strings.Repeat(text, int(n)), nil
		}
	}
	return "", fmt.Errorf("$repeat needs [text, n]")
}

func concat(parts []any) (string, error) {
	var b strings.Builder
	for _, part := range parts {
		text, ok := part.(string)
		if !ok {
			return "", fmt.Errorf("$concat needs strings")
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

// fill puts saved values where {name} stands. Other braces stay: bodies have them.
func fill(text string, names map[string]string) string {
	for name, value := range names {
		text = strings.ReplaceAll(text, "{"+name+"}", value)
	}
	return text
}
