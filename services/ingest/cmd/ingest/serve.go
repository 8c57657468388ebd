package main

import (
	"context"
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
	"verbatim.internal/services/ingest"
)

const (
	prefix       = "VERBATIM_INGEST_"
	startTimeout = 15 * time.Second
	stopTimeout  = 75 * time.Second
)

func serve(ctx context.Context) error {
	memory.Tune()
	cfg, err := ingest.LoadStandaloneConfig(nil)
	if err != nil {
		return err
	}
	log := telemetry.NewLogger(os.Stderr, cfg.LogLevel, "ingest")
	stopTracing, err := telemetry.StartTracing(ctx, "ingest")
	if err != nil {
		return err
	}
	svc, err := ingest.New(cfg, log)
	if err != nil {
		return err
	}
	starting, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := svc.Start(starting); err != nil {
		return err
	}
	var failure error
	select {
	case <-ctx.Done():
	case failure = <-svc.Failed():
	}
	log.Info("ingest drains")
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if err := svc.Stop(stopping); err != nil && failure == nil {
		failure = err
	}
	if err := stopTracing(stopping); err != nil {
		log.Warn("the last spans were not exported", slog.String("error", err.Error()))
	}
	return failure
}

// healthConfig is all that a health check needs.
type healthConfig struct {
	// Addr is where agents are served.
	Addr string `env:"ADDR" envDefault:"127.0.0.1:8080"`
}

// health asks /readyz of the configured address, on this machine.
func health(ctx context.Context) error {
	cfg, err := config.Load[healthConfig](prefix, nil)
	if err != nil {
		return err
	}
	return httpserver.Probe(ctx, cfg.Addr)
}

// validate prints a line a check, and fails when one of them does.
func validate(ctx context.Context, out io.Writer) error {
	cfg, err := ingest.LoadStandaloneConfig(nil)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "configuration: ok")
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	state, err := ingest.MigrateStatus(ctx, cfg.DSN)
	if err != nil {
		return fmt.Errorf("database: cannot be asked: %w", err)
	}
	fmt.Fprintln(out, "database: ok")
	if len(state.Pending) > 0 {
		return fmt.Errorf("migrations: not applied: %s; run ingest migrate up", strings.Join(state.Pending, ", "))
	}
	if len(state.Unknown) > 0 {
		return fmt.Errorf("migrations: the database has versions that this release does not know: %v", state.Unknown)
	}
	fmt.Fprintf(out, "migrations: ok, at %d\n", state.Current)
	return nil
}
