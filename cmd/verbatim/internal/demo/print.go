package demo

import (
	"fmt"
	"io"
	"strings"
)

const (
	done = "✓"
	lost = "✗"

	wrapAt = 72
)

// printer writes lines and remembers the first failure.
type printer struct {
	out   io.Writer
	color bool
	err   error
}

func newPrinter(out io.Writer, color bool) printer { return printer{out: out, color: color} }

func (p *printer) line(format string, args ...any) {
	if p.err != nil {
		return
	}
	if _, err := fmt.Fprintf(p.out, format+"\n", args...); err != nil {
		p.err = fmt.Errorf("the demo's output could not be written: %w", err)
	}
}

func (p *printer) blank() { p.line("") }

func (p *printer) title(name, rest string) {
	p.blank()
	p.line("%s", p.paint("1", name)+p.paint("2", " · "+rest))
	p.blank()
}

func (p *printer) step(mark, name, format string, args ...any) {
	code := "32"
	if mark == lost {
		code = "33"
	}
	p.line("%s", p.paint(code, mark)+" "+pad(name, 10)+fmt.Sprintf(format, args...))
}

// paint wraps s in a colour code where colour is allowed.
func (p *printer) paint(code, s string) string {
	if !p.color {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(1, width-len([]rune(s))))
}

// readable makes visible in a terminal what it would swallow.
func readable(text string) []string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		kept := strings.TrimRight(line, " ")
		line = kept + strings.Repeat("·", len(line)-len(kept))
		line = strings.NewReplacer("\t", "⇥   ", "\r", "␍").Replace(line)
		lines = append(lines, wrap(line)...)
	}
	return lines
}

// wrap breaks a line at spaces; a word that is too long stays whole.
func wrap(line string) []string {
	var out []string
	rest := []rune(line)
	for len(rest) > wrapAt {
		at := -1
		for i := wrapAt; i > 0; i-- {
			if rest[i] == ' ' {
				at = i
				break
			}
		}
		if at < 0 {
			break
		}
		out = append(out, string(rest[:at]))
		rest = rest[at+1:]
	}
	return append(out, string(rest))
}
