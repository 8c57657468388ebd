package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// event is one line of "go test -json" (go doc test2json).
type event struct {
	Action      string
	Package     string
	ImportPath  string
	Test        string
	Output      string
	FailedBuild string
	Elapsed     float64
}

// key names a test, or with an empty test the package itself.
type key struct{ pkg, test string }

// report keeps the output of what still runs and prints it when that has failed.
type report struct {
	w                       io.Writer
	output                  map[key]*bytes.Buffer
	builds                  map[string]*bytes.Buffer
	passed, failed, skipped int
	broken                  int // packages that failed without a failed test: builds, panics, time-outs
	failures                map[string]int
}

func newReport(w io.Writer) *report {
	return &report{
		w:        w,
		output:   map[key]*bytes.Buffer{},
		builds:   map[string]*bytes.Buffer{},
		failures: map[string]int{},
	}
}

// read takes events until the stream ends. A line that is no event is passed on.
func (r *report) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if jsonErr := json.Unmarshal(line, &e); jsonErr != nil {
				r.printf("%s", line)
			} else {
				r.take(e)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *report) take(e event) {
	k := key{e.Package, e.Test}
	switch e.Action {
	case "output":
		buffer(r.output, k).WriteString(e.Output)
	case "build-output":
		buffer(r.builds, e.ImportPath).WriteString(e.Output)
	case "build-fail":
		r.printf("%s", buffer(r.builds, e.ImportPath))
		delete(r.builds, e.ImportPath)
	case "pass", "skip":
		r.done(e, k)
	case "fail":
		r.fail(e, k)
	}
}

func (r *report) done(e event, k key) {
	if e.Test == "" {
		r.summary(k)
		return
	}
	if e.Action == "skip" {
		r.skipped++
	} else {
		r.passed++
	}
	delete(r.output, k)
}

func (r *report) fail(e event, k key) {
	if e.Test != "" {
		r.failed++
		r.failures[e.Package]++
		r.printf("%s", buffer(r.output, k))
		delete(r.output, k)
		return
	}
	if r.failures[e.Package] == 0 {
		r.broken++
	}
	// A panic or a time-out ends a package while tests run; their output tells why.
	for other, text := range r.output {
		if other.pkg == e.Package && other.test != "" {
			r.printf("%s", text)
			delete(r.output, other)
		}
	}
	r.printf("%s", buffer(r.output, k))
	delete(r.output, k)
}

// summary prints the last line of a package that passed, as "go test" does.
func (r *report) summary(k key) {
	text := strings.TrimRight(buffer(r.output, k).String(), "\n")
	if i := strings.LastIndexByte(text, '\n'); i >= 0 {
		text = text[i+1:]
	}
	r.printf("%s\n", text)
	delete(r.output, k)
}

// close prints the totals and says whether tests ran and all passed.
func (r *report) close() bool {
	skipped := ""
	if r.skipped > 0 {
		skipped = fmt.Sprintf(", %d skipped", r.skipped)
	}
	r.printf("%d passed, %d failed%s\n", r.passed, r.failed+r.broken, skipped)
	return r.passed > 0 && r.failed+r.broken == 0
}

func (r *report) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(r.w, format, args...)
}

func buffer[K comparable](m map[K]*bytes.Buffer, k K) *bytes.Buffer {
	b, ok := m[k]
	if !ok {
		b = &bytes.Buffer{}
		m[k] = b
	}
	return b
}
