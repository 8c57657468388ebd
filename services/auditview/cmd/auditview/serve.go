package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"verbatim.internal/pkg/platform/config"
	"verbatim.internal/pkg/platform/httpserver"
	"verbatim.internal/pkg/platform/memory"
	"verbatim.internal/pkg/platform/telemetry"
	"verbatim.internal/services/auditview"
)

const (
	startTimeout = 15 * time.Second
	stopTimeout  = 60 * time.Second
)

func serve(ctx context.Context) error {
	memory.Tune()
	cfg, err := auditview.LoadConfig(nil)
	if err != nil {
		return err
	}
	log := telemetry.NewLogger(os.Stderr, cfg.LogLevel, "auditview")
	stopTracing, err := telemetry.StartTracing(ctx, "auditview")
	if err != nil {
		return err
	}
	service, err := auditview.New(cfg, log)
	if err != nil {
		return err
	}
	starting, cancel := context.WithTimeout(context.WithoutCancel(ctx), startTimeout)
	err = service.Start(starting)
	cancel()
	if err != nil {
		return err
	}
	var failed error
	select {
	case <-ctx.Done():
		log.Info("auditview drains")
	case failed = <-service.Failed():
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	err = errors.Join(failed, service.Stop(stopping))
	if traceErr := stopTracing(stopping); traceErr != nil {
		// Spans that are lost are no failure of the service.
		log.Warn("the last spans were not sent", slog.Any("error", traceErr))
	}
	return err
}

// healthConfig is all that a health check needs.
type healthConfig struct {
	Addr string `env:"ADDR" envDefault:"127.0.0.1:8081"`
}

// health asks /readyz of the configured address, on this machine.
func health(ctx context.Context) error {
	cfg, err := config.Load[healthConfig](prefix, nil)
	if err != nil {
		return err
	}
	return httpserver.Probe(ctx, cfg.Addr)
}

// validate prints a line for each check, and fails when one of them does.
func validate(ctx context.Context, out io.Writer) error {
	cfg, err := auditview.LoadConfig(nil)
	if err == nil {
		err = cfg.ValidateInternal()
	}
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	fmt.Fprintln(out, "configuration: ok")
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	state, err := auditview.MigrateStatus(ctx, cfg.DSN)
	if err != nil {
		return fmt.Errorf("database: cannot be asked: %w", err)
	}
	fmt.Fprintln(out, "database: ok")
	if len(state.Pending) > 0 {
		return fmt.Errorf("migrations: not applied: %s; run auditview migrate up", strings.Join(state.Pending, ", "))
	}
	if len(state.Unknown) > 0 {
		return fmt.Errorf("migrations: the database has versions that this release does not know: %v", state.Unknown)
	}
	fmt.Fprintf(out, "migrations: ok, at %d\n", state.Current)
	return nil
}
