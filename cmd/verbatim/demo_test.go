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
	require.Len(t, commands, 4)
	for range 2 { // each may be repeated
		for _, c := range commands {
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
			case strings.HasSuffix(url[1], "/trace"):
				assert.Contains(t, answer, `"conversation_audit_id"`)
			case strings.Contains(url[1], "after_sequence"):
				assert.Contains(t, answer, "Keep my spacing exactly")
			default:
				assert.Contains(t, answer, `"items":[{`)
			}
		}
	}
}
