package main

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	bearerPattern = regexp.MustCompile(`Authorization: Bearer (\S+)'`)
	urlPattern    = regexp.MustCompile(`'(http://[^']+)'`)
	bodyPattern   = regexp.MustCompile(`-d '([^']+)'`)
)

func TestDemoProvesAndStaysUp(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	for range 2 { // also on a used data directory
		p := up(t, dir, "--demo")
		p.awaitReady(t)
		var text strings.Builder
		for !strings.Contains(text.String(), "Ctrl-C stops.") {
			line, err := p.out.ReadString('\n')
			require.NoError(t, err, "stderr: %s", p.stderr)
			text.WriteString(line)
		}
		assert.Contains(t, text.String(), "the same bytes")
		assert.NotContains(t, text.String(), "\x1b[", "no colours where it is no terminal")
		assert.Empty(t, p.stderr.String(), "nothing stands between its lines")
		tryPrintedCommands(t, text.String())
		p.stop(t)
		assert.Empty(t, p.stderr.String(), "nor after them")
	}
}

// tryPrintedCommands does what the printed curl commands say.
func tryPrintedCommands(t *testing.T, text string) {
	t.Helper()
	commands := strings.Split(text, "\n# ")[1:]
	require.Len(t, commands, 6)
	for range 2 { // each may be repeated
		for _, c := range commands {
			if !strings.Contains(c, "curl") {
				replayed(t, c)
				continue
			}
			bearer, url, body := bearerPattern.FindStringSubmatch(c), urlPattern.FindStringSubmatch(c), bodyPattern.FindStringSubmatch(c)
			require.NotNil(t, bearer)
			require.NotNil(t, url)
			method, content := http.MethodGet, ""
			if body != nil {
				method, content = http.MethodPost, body[1]
			}
			status, answer := call(t, method, url[1], bearer[1], content)
			require.Equal(t, http.StatusOK, status, answer)
			switch {
			case body != nil:
				assert.Contains(t, answer, `"last_sequence":16`)
			case strings.HasSuffix(url[1], "/audit"):
				assert.Contains(t, answer, `"redacted":true`)
			case strings.HasSuffix(url[1], "/trace"):
				assert.Contains(t, answer, `"conversation_audit_id"`)
				assert.Contains(t, answer, `"executions":[{"client_app_id":"verbatim-demo"`)
			case strings.Contains(url[1], "after_sequence"):
				assert.Contains(t, answer, "Keep my spacing exactly")
			default:
				assert.Contains(t, answer, `"items":[{`)
			}
		}
	}
}

var replayPattern = regexp.MustCompile(`VERBATIM_ADMIN_TOKEN=(\S+) bin/verbatim (replay .*)\n`)

// replayed runs the printed command that is none of curl's.
func replayed(t *testing.T, command string) {
	t.Helper()
	found := replayPattern.FindStringSubmatch(command)
	require.NotNil(t, found, command)
	p := startWith(t, []string{"VERBATIM_ADMIN_TOKEN=" + found[1]}, strings.Fields(found[2])...)
	assert.Regexp(t, `aud_000013 \S+ -/- deployment\.status_changed -> info\n$`, p.output(t))
}
