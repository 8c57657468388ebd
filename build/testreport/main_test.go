package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// module writes a module of one package whose tests are the given source.
func module(t *testing.T, source string) string {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{"go.mod": "module example.test/m\n\ngo 1.26.0\n", "m_test.go": source}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestRun(t *testing.T) {
	t.Parallel()
	const head = "package m\n\nimport \"testing\"\n\n"
	cases := map[string]struct {
		source string
		ok     bool
		last   string
		has    string
		hasNot string
	}{
		"passes": {
			source: head + "func TestA(t *testing.T) { t.Log(\"quiet\"); t.Run(\"sub\", func(*testing.T) {}) }\n",
			ok:     true, last: "2 passed, 0 failed", has: "ok  \texample.test/m", hasNot: "quiet",
		},
		"fails": {
			source: head + "func TestA(t *testing.T) { t.Error(\"reason\") }\nfunc TestB(t *testing.T) { t.Log(\"quiet\") }\n",
			last:   "1 passed, 1 failed", has: "reason", hasNot: "quiet",
		},
		"panics": {
			source: head + "func TestA(*testing.T) {}\nfunc TestB(*testing.T) { panic(\"reason\") }\n",
			last:   "1 passed, 1 failed", has: "panic: reason",
		},
		"does not build": {
			source: head + "func TestA(t *testing.T) { undefined() }\n",
			last:   "0 passed, 1 failed", has: "undefined: undefined",
		},
		"no test": {source: "package m\n", last: "0 passed, 0 failed"},
		"skips": {
			source: head + "func TestA(*testing.T) {}\nfunc TestB(t *testing.T) { t.Skip() }\n",
			ok:     true, last: "1 passed, 0 failed, 1 skipped",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, stderr bytes.Buffer
			ok, err := run(t.Context(), &out, &stderr, []string{"go", "test", "-C", module(t, c.source), "-json", "./..."})
			if err != nil || ok != c.ok {
				t.Fatalf("ok %v, error %v\n%s%s", ok, err, &out, &stderr)
			}
			text := strings.TrimSpace(out.String())
			if last := text[strings.LastIndexByte(text, '\n')+1:]; last != c.last {
				t.Errorf("last line %q, want %q", last, c.last)
			}
			if !strings.Contains(text, c.has) || (c.hasNot != "" && strings.Contains(text, c.hasNot)) {
				t.Errorf("report:\n%s", text)
			}
		})
	}
}

func TestRunCommandThatCannotStart(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if ok, err := run(t.Context(), &out, &out, []string{filepath.Join(t.TempDir(), "absent")}); ok || err == nil {
		t.Fatalf("ok %v, error %v", ok, err)
	}
}
