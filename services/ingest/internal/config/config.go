// Package config is ingest's configuration, from environment variables that
// begin with VERBATIM_INGEST_.
package config

import (
	"errors"
	"log/slog"
	"time"

	"verbatim.internal/pkg/platform/config"
)

// Prefix begins the name of every variable.
const Prefix = "VERBATIM_INGEST_"

// Config is what `ingest serve` needs. Every secret may come from a file instead,
// named by the variable with _FILE appended.
type Config struct {
	// DSN reaches ingest's database as its service role. Required.
	DSN config.Secret `env:"DSN,required"`
	// DirectDSN reaches the same database without a transaction pooler between,
	// for session locks and notices. Default: DSN.
	DirectDSN config.Secret `env:"DIRECT_DSN"`
	// Addr is where agents are served, host:port; port 0 takes a free one.
	Addr string `env:"ADDR" envDefault:"127.0.0.1:8080"`
	// ControlAddr is where the registry is served to controllers. Empty, the default, turns
	// it off. Who reaches it and has a controller's token decides who may write.
	ControlAddr string `env:"CONTROL_ADDR"`
	// MetricsAddr is where Prometheus metrics are served; empty turns them off.
	MetricsAddr string `env:"METRICS_ADDR" envDefault:"127.0.0.1:9464" envEmpty:"keep"`
	// RelayURL is auditview's internal listener. Empty only where a transport is given in process.
	RelayURL string `env:"RELAY_URL"`
	// RelayToken is the bearer that auditview's internal listener expects.
	RelayToken config.Secret `env:"RELAY_TOKEN"`
	// RelayCAFile is a PEM file of the authorities that sign auditview's certificate. Default: the system's.
	RelayCAFile string `env:"RELAY_CA_FILE"`
	// RelayCheckInterval is how often the relay asks auditview whether anything that it sent
	// was lost; 0 is never.
	RelayCheckInterval time.Duration `env:"RELAY_CHECK_INTERVAL" envDefault:"5m"`
	// MaxConns bounds the connections that requests share, 1 or more.
	MaxConns int32 `env:"MAX_CONNS" envDefault:"16"`
	// RequestTimeout bounds the work for one request.
	RequestTimeout time.Duration `env:"REQUEST_TIMEOUT" envDefault:"15s"`
	// DrainTimeout bounds how long requests in flight are waited for at the end; at least RequestTimeout.
	DrainTimeout time.Duration `env:"DRAIN_TIMEOUT" envDefault:"45s"`
	// TrustedProxies are the addresses or networks whose X-Forwarded-For is believed. Default: none.
	TrustedProxies []string `env:"TRUSTED_PROXIES"`
	// LogLevel is debug, info, warn or error.
	LogLevel slog.Level `env:"LOG_LEVEL" envDefault:"info"`
}

// Load reads the configuration; nil environ means the process's own. The error
// names everything that is wrong, and no value.
func Load(environ map[string]string) (Config, error) { return config.Load[Config](Prefix, environ) }

// Standalone is the configuration of a service on its own, whose relay uses the
// http transport.
type Standalone struct{ Config }

// LoadStandalone is Load for a service on its own.
func LoadStandalone(environ map[string]string) (Config, error) {
	c, err := config.Load[Standalone](Prefix, environ)
	return c.Config, err
}

// Validate adds what the http transport lacks.
func (s Standalone) Validate() error { return errors.Join(s.Config.Validate(), s.ValidateRelay()) }

// Validate reports what Load cannot see in a single variable.
func (c Config) Validate() error {
	var errs []error
	if c.MaxConns < 1 {
		errs = append(errs, errors.New(Prefix+"MAX_CONNS takes a number from 1 up"))
	}
	if c.RequestTimeout <= 0 || c.DrainTimeout <= 0 {
		errs = append(errs, errors.New(Prefix+"REQUEST_TIMEOUT and "+Prefix+"DRAIN_TIMEOUT take a duration above 0"))
	}
	if c.RelayCheckInterval < 0 {
		errs = append(errs, errors.New(Prefix+"RELAY_CHECK_INTERVAL takes a duration from 0 up"))
	}
	if c.DrainTimeout < c.RequestTimeout {
		errs = append(errs, errors.New(Prefix+"DRAIN_TIMEOUT must not be shorter than "+Prefix+"REQUEST_TIMEOUT: an append in flight would lose its answer"))
	}
	if c.RelayURL != "" && c.RelayToken == "" {
		errs = append(errs, errors.New(Prefix+"RELAY_TOKEN or "+Prefix+"RELAY_TOKEN_FILE is needed with "+Prefix+"RELAY_URL"))
	}
	return errors.Join(errs...)
}

// ValidateRelay reports what the http transport lacks. It is asked only where no
// transport is given in process.
func (c Config) ValidateRelay() error {
	if c.RelayURL == "" {
		return errors.New(Prefix + "RELAY_URL is required: the address of auditview's internal listener")
	}
	return nil
}

// Direct returns the DSN for session locks and notices.
func (c Config) Direct() config.Secret {
	if c.DirectDSN != "" {
		return c.DirectDSN
	}
	return c.DSN
}
