// Package config is auditview's configuration, from environment variables that begin
// with VERBATIM_AUDITVIEW_.
package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"verbatim.internal/pkg/platform/config"
)

// Prefix begins the name of every variable.
const Prefix = "VERBATIM_AUDITVIEW_"

// Config is what `auditview serve` needs. Every secret may come from a file instead,
// named by the variable with _FILE appended.
type Config struct {
	// DSN reaches auditview's database as its service role. Required.
	DSN config.Secret `env:"DSN,required"`
	// Addr is where administrators are served, host:port; port 0 takes a free one.
	Addr string `env:"ADDR" envDefault:"127.0.0.1:8081"`
	// InternalAddr is where ingest's relay is received; not used with a transport in process.
	InternalAddr string `env:"INTERNAL_ADDR" envDefault:"127.0.0.1:8082"`
	// InternalToken is the bearer that the relay has to show. Required but for a transport in process.
	InternalToken config.Secret `env:"INTERNAL_TOKEN"`
	// InternalTLSCertFile and InternalTLSKeyFile are PEM files. Required unless InternalAddr
	// is a loopback address.
	InternalTLSCertFile string `env:"INTERNAL_TLS_CERT_FILE"`
	InternalTLSKeyFile  string `env:"INTERNAL_TLS_KEY_FILE"`
	// MetricsAddr is where Prometheus metrics are served; set to nothing, it turns them off.
	MetricsAddr string `env:"METRICS_ADDR" envDefault:"127.0.0.1:9465" envEmpty:"keep"`
	// MaxConns bounds the connections that the projection's 16 partitions share, and,
	// apart from them, those of administrators. 1 or more.
	MaxConns int32 `env:"MAX_CONNS" envDefault:"8"`
	// RequestTimeout bounds the work for one request of an administrator.
	RequestTimeout time.Duration `env:"REQUEST_TIMEOUT" envDefault:"15s"`
	// DrainTimeout bounds how long requests and batches in flight are waited for at the end.
	DrainTimeout time.Duration `env:"DRAIN_TIMEOUT" envDefault:"20s"`
	// TrustedProxies are the addresses or networks whose X-Forwarded-For is believed. Default: none.
	TrustedProxies []string `env:"TRUSTED_PROXIES"`
	// LogLevel is debug, info, warn or error.
	LogLevel slog.Level `env:"LOG_LEVEL" envDefault:"info"`
}

// Load reads the configuration; nil environ means the process's own. The error names
// everything that is wrong, and no value.
func Load(environ map[string]string) (Config, error) { return config.Load[Config](Prefix, environ) }

// Validate reports what Load cannot see in a single variable.
func (c Config) Validate() error {
	var errs []error
	if c.MaxConns < 1 {
		errs = append(errs, errors.New(Prefix+"MAX_CONNS takes a number from 1 up"))
	}
	if c.RequestTimeout <= 0 || c.DrainTimeout <= 0 {
		errs = append(errs, errors.New(Prefix+"REQUEST_TIMEOUT and "+Prefix+"DRAIN_TIMEOUT take a duration above 0"))
	}
	if (c.InternalTLSCertFile == "") != (c.InternalTLSKeyFile == "") {
		errs = append(errs, errors.New(Prefix+"INTERNAL_TLS_CERT_FILE and "+Prefix+"INTERNAL_TLS_KEY_FILE go together"))
	}
	return errors.Join(errs...)
}

// ValidateInternal reports what the internal listener lacks. It is asked only when there
// is one: with a transport in process there is none.
func (c Config) ValidateInternal() error {
	var errs []error
	if c.InternalToken == "" {
		errs = append(errs, errors.New(Prefix+"INTERNAL_TOKEN or "+Prefix+"INTERNAL_TOKEN_FILE is required: the bearer of ingest's relay"))
	}
	host, _, err := net.SplitHostPort(c.InternalAddr)
	if err != nil {
		errs = append(errs, errors.New(Prefix+"INTERNAL_ADDR takes host:port"))
	} else if c.InternalTLSCertFile == "" && !loopback(host) {
		errs = append(errs, fmt.Errorf("%sINTERNAL_TLS_CERT_FILE and %sINTERNAL_TLS_KEY_FILE are required, because %sINTERNAL_ADDR is not a loopback address and conversations travel over it", Prefix, Prefix, Prefix))
	}
	return errors.Join(errs...)
}

func loopback(host string) bool {
	return strings.EqualFold(host, "localhost") || net.ParseIP(host).IsLoopback()
}
