package config_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/platform/config"
)

const hidden = "hunter2-do-not-print"

type relay struct {
	URL   string        `env:"URL"`
	Token config.Secret `env:"TOKEN"`
}

type settings struct {
	DSN      config.Secret `env:"DSN,required,notEmpty"`
	Addr     string        `env:"ADDR"                  envDefault:"127.0.0.1:8080"`
	MaxConns int32         `env:"MAX_CONNS"             envDefault:"8"`
	Drain    time.Duration `env:"DRAIN"                 envDefault:"30s"`
	Level    slog.Level    `env:"LOG_LEVEL"             envDefault:"info"`
	Proxies  []string      `env:"PROXIES"`
	Relay    relay         `envPrefix:"RELAY_"`
}

func (s settings) Validate() error {
	var errs []error
	if s.MaxConns < 1 {
		errs = append(errs, errors.New("VERBATIM_X_MAX_CONNS must be at least 1"))
	}
	if s.Relay.URL == "" {
		errs = append(errs, errors.New("VERBATIM_X_RELAY_URL must be set"))
	}
	return errors.Join(errs...)
}

func problems(t *testing.T, environ map[string]string) []string {
	t.Helper()
	cfg, err := config.Load[settings]("VERBATIM_X_", environ)
	var invalid *config.InvalidError
	require.ErrorAs(t, err, &invalid)
	require.Zero(t, cfg)
	require.NotContains(t, err.Error(), hidden)
	return invalid.Problems
}

func TestLoadFillsNestedFieldsAndDefaults(t *testing.T) {
	t.Parallel()
	cfg, err := config.Load[settings]("VERBATIM_X_", map[string]string{
		"VERBATIM_X_DSN":         hidden,
		"VERBATIM_X_RELAY_URL":   "https://auditview:8082",
		"VERBATIM_X_RELAY_TOKEN": "t",
		"VERBATIM_X_PROXIES":     "10.0.0.1,10.0.0.2",
		"VERBATIM_X_LOG_LEVEL":   "debug",
		"DSN":                    "another program's",
	})
	require.NoError(t, err)
	require.Equal(t, settings{
		DSN: hidden, Addr: "127.0.0.1:8080", MaxConns: 8, Drain: 30 * time.Second, Level: slog.LevelDebug,
		Proxies: []string{"10.0.0.1", "10.0.0.2"}, Relay: relay{URL: "https://auditview:8082", Token: "t"},
	}, cfg)
}

func TestLoadReportsAllProblemsAtOnce(t *testing.T) {
	t.Parallel()
	require.ElementsMatch(t, []string{
		"VERBATIM_X_DSN is required and not set",
		"VERBATIM_X_MAX_CONNS is malformed: it takes a whole number",
		"VERBATIM_X_DRAIN is malformed: it takes a duration such as 500ms, 10s or 5m",
		"VERBATIM_X_LOG_LEVEL is malformed: it cannot be converted",
		"VERBATIM_X_RELAY_URL must be set",
	}, problems(t, map[string]string{
		"VERBATIM_X_MAX_CONNS": hidden,
		"VERBATIM_X_DRAIN":     hidden,
		"VERBATIM_X_LOG_LEVEL": hidden,
	}))
}

func TestLoadRefusesAnEmptyRequiredVariable(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"VERBATIM_X_DSN is required and not set"},
		problems(t, map[string]string{"VERBATIM_X_DSN": "", "VERBATIM_X_RELAY_URL": "u"}))
}

func TestLoadReadsTheProcessEnvironment(t *testing.T) {
	t.Setenv("VERBATIM_X_DSN", hidden)
	t.Setenv("VERBATIM_X_RELAY_URL", "u")
	cfg, err := config.Load[settings]("VERBATIM_X_", nil)
	require.NoError(t, err)
	require.Equal(t, hidden, cfg.DSN.Reveal())
}

func TestSecretsMayComeFromFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	full, empty := write("full", " \n"+hidden+"\r\n"), write("empty", " \n")
	huge := write("huge", strings.Repeat("x", 64<<10+1))

	environ := map[string]string{"VERBATIM_X_DSN_FILE": full, "VERBATIM_X_RELAY_URL": "u", "VERBATIM_X_RELAY_TOKEN_FILE": full}
	cfg, err := config.Load[settings]("VERBATIM_X_", environ)
	require.NoError(t, err)
	require.Equal(t, hidden, cfg.DSN.Reveal())
	require.Equal(t, hidden, cfg.Relay.Token.Reveal())
	require.NotContains(t, environ, "VERBATIM_X_DSN", "the caller's map was changed")

	for path, reason := range map[string]string{
		empty:                     "VERBATIM_X_DSN_FILE names a file that is empty",
		huge:                      "VERBATIM_X_DSN_FILE names a file that is larger than 64 KiB",
		dir:                       "VERBATIM_X_DSN_FILE names a file that is not a regular file",
		filepath.Join(dir, "no"):  "VERBATIM_X_DSN_FILE names a file that does not exist",
		filepath.Join(full, "no"): "VERBATIM_X_DSN_FILE names a file that cannot be read: not a directory",
	} {
		require.Equal(t, []string{reason}, problems(t, map[string]string{"VERBATIM_X_DSN_FILE": path, "VERBATIM_X_RELAY_URL": "u"}))
	}
	require.Equal(t, []string{"VERBATIM_X_DSN and VERBATIM_X_DSN_FILE are both set; give one"},
		problems(t, map[string]string{"VERBATIM_X_DSN": hidden, "VERBATIM_X_DSN_FILE": full, "VERBATIM_X_RELAY_URL": "u"}))
}

func TestSecretNeverPrints(t *testing.T) {
	t.Parallel()
	secret := config.Secret(hidden)
	wrapped := struct {
		Token  config.Secret
		Tokens []config.Secret
		Named  map[string]config.Secret
		reveal func() string
	}{secret, []config.Secret{secret}, map[string]config.Secret{"a": secret}, secret.Reveal}
	require.Equal(t, hidden, wrapped.reveal())

	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T", "%10s", "%.3s", "% x", "%t", "%!"} {
		fmt.Fprintf(&out, verb+"\n", secret)
		fmt.Fprintf(&out, verb+"\n", &secret)
		fmt.Fprintf(&out, verb+"\n", wrapped)
	}
	fmt.Fprint(&out, secret, wrapped)
	fmt.Fprintln(&out, secret.String(), secret.GoString(), errors.New(secret.String()))
	for _, handler := range []slog.Handler{slog.NewJSONHandler(&out, nil), slog.NewTextHandler(&out, nil)} {
		slog.New(handler).Info("m", "secret", secret, "wrapped", wrapped, "pointer", &secret)
	}
	raw, err := json.Marshal(wrapped)
	require.NoError(t, err)
	out.Write(raw)

	printed := out.String()
	require.NotContains(t, printed, hidden)
	require.NotContains(t, strings.ToLower(printed), fmt.Sprintf("%x", hidden))
	require.NotContains(t, printed, hidden[:6])
	require.Contains(t, printed, "[redacted]")
}

func ExampleLoad() {
	type service struct {
		DSN  config.Secret `env:"DSN,required"`
		Addr string        `env:"ADDR"         envDefault:"127.0.0.1:8080"`
	}
	_, err := config.Load[service]("VERBATIM_INGEST_", map[string]string{})
	fmt.Println(err)

	cfg, err := config.Load[service]("VERBATIM_INGEST_", map[string]string{"VERBATIM_INGEST_DSN": "postgres://…"})
	fmt.Println(cfg, err)
	// Output:
	// the configuration is invalid:
	//   VERBATIM_INGEST_DSN is required and not set
	// {[redacted] 127.0.0.1:8080} <nil>
}

func TestLoadKeepsNothingWhereNothingIsAValue(t *testing.T) {
	t.Parallel()
	type settings struct {
		Keep    string `env:"KEEP" envDefault:"a" envEmpty:"keep"`
		Default string `env:"DEFAULT" envDefault:"b"`
	}
	got, err := config.Load[settings]("X_", map[string]string{"X_KEEP": "", "X_DEFAULT": ""})
	if err != nil || got != (settings{Keep: "", Default: "b"}) {
		t.Errorf("got %+v, %v", got, err)
	}
	got, err = config.Load[settings]("X_", map[string]string{})
	if err != nil || got != (settings{Keep: "a", Default: "b"}) {
		t.Errorf("unset: got %+v, %v", got, err)
	}
}
