package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/platform/database"
	"verbatim.internal/pkg/platform/pgtest"
	auditviewsql "verbatim.internal/sql/auditview"
)

// asCommand makes the test program the command itself.
const asCommand = "AUDITVIEW_TEST_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func auditviewCommand(t *testing.T, environ []string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Env = append([]string{asCommand + "=1"}, environ...)
	return cmd
}

func TestCommandsOfAnOperator(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, database.Auditview, auditviewsql.FS, -1)
	environ := []string{"VERBATIM_AUDITVIEW_DSN=" + db.ServiceDSN, "VERBATIM_AUDITVIEW_OWNER_DSN=" + db.OwnerDSN, "VERBATIM_AUDITVIEW_INTERNAL_TOKEN=secret-of-the-relay"}
	run := func(fails bool, args ...string) string {
		t.Helper()
		out, err := auditviewCommand(t, environ, args...).CombinedOutput()
		if fails {
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit)
			require.Equal(t, 1, exit.ExitCode(), string(out))
		} else {
			require.NoError(t, err, string(out))
		}
		require.NotContains(t, string(out), "secret-of-the-relay")
		return string(out)
	}
	files, err := fs.Glob(auditviewsql.FS, "*.sql")
	require.NoError(t, err)
	require.Equal(t, "configuration: ok\ndatabase: ok\nauditview: migrations: not applied: "+strings.Join(files, ", ")+"; run auditview migrate up\n", run(true, "--validate"))
	require.Equal(t, "at version 0\npending "+strings.Join(files, "\npending ")+"\n", run(false, "migrate", "status"))
	require.Contains(t, run(false, "migrate", "up", "--to", "1"), "applied 001_read_model.sql")
	require.Contains(t, run(false, "migrate", "up"), "applied 002_administrators.sql")
	require.Equal(t, "nothing to apply\n", run(false, "migrate", "up"))
	require.Equal(t, fmt.Sprintf("configuration: ok\ndatabase: ok\nmigrations: ok, at %d\n", len(files)), run(false, "--validate"))
	require.Contains(t, run(true, "health"), "does not answer")
	require.Contains(t, run(true), "name a command")
	environ = environ[:1]
	require.Contains(t, run(true, "--validate"), "VERBATIM_AUDITVIEW_INTERNAL_TOKEN")
	require.Contains(t, run(true, "migrate", "up"), "VERBATIM_AUDITVIEW_OWNER_DSN is required")
}

func TestServeDrainsOnSIGTERM(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, database.Auditview, auditviewsql.FS, 0)
	serve := auditviewCommand(t, []string{
		"VERBATIM_AUDITVIEW_DSN=" + db.ServiceDSN, "VERBATIM_AUDITVIEW_INTERNAL_TOKEN=t", "VERBATIM_AUDITVIEW_METRICS_ADDR=",
		"VERBATIM_AUDITVIEW_ADDR=127.0.0.1:0", "VERBATIM_AUDITVIEW_INTERNAL_ADDR=127.0.0.1:0",
	}, "serve")
	stderr, err := serve.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, serve.Start())

	lines := bufio.NewScanner(stderr)
	address := ""
	for address == "" && lines.Scan() {
		if _, after, ok := strings.Cut(lines.Text(), `"msg":"auditview serves","service":"auditview","address":"`); ok {
			address, _, _ = strings.Cut(after, `"`)
		}
	}
	require.NotEmpty(t, address)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/readyz", http.NoBody)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)
	out, err := auditviewCommand(t, []string{"VERBATIM_AUDITVIEW_ADDR=" + address}, "health").CombinedOutput()
	require.NoError(t, err, string(out))

	require.NoError(t, serve.Process.Signal(syscall.SIGTERM))
	_, err = io.Copy(io.Discard, stderr)
	require.NoError(t, err)
	require.NoError(t, serve.Wait())
}
