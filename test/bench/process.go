package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"verbatim.internal/pkg/platform/config"
	"verbatim.internal/services/auditview"
	"verbatim.internal/services/ingest"
)

const (
	readyTimeout = time.Minute
	readyPeriod  = 20 * time.Millisecond
	// clockTicks is how many ticks of /proc/PID/stat a second has, on every Linux there is.
	clockTicks = 100
)

// program is a service as it is deployed: a process of its own.
type program struct {
	cmd *exec.Cmd
	url string
	log bytes.Buffer
}

// programs are both services, joined by HTTP.
type programs struct {
	dir               string
	ingest, auditview *program
}

// startPrograms builds both services and starts them on the databases.
func startPrograms(ctx context.Context, ingestDSN, auditviewDSN string) (*programs, error) {
	if runtime.GOOS != "linux" {
		return nil, errors.New("the services' processes are measured on Linux only")
	}
	dir, err := os.MkdirTemp("", "verbatim-bench-")
	if err != nil {
		return nil, err
	}
	p := &programs{dir: dir}
	if err := p.start(ctx, ingestDSN, auditviewDSN); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return p, nil
}

func (p *programs) start(ctx context.Context, ingestDSN, auditviewDSN string) error {
	if _, err := ingest.Apply(ctx, config.Secret(ingestDSN), []byte(registry)); err != nil {
		return err
	}
	if _, err := auditview.ApplyAdmins(ctx, config.Secret(auditviewDSN), []byte(administrators)); err != nil {
		return err
	}
	token := rand.Text()
	internal, err := freeAddress(ctx)
	if err != nil {
		return err
	}
	p.auditview, err = p.run(ctx, "auditview", map[string]string{
		"DSN": auditviewDSN, "METRICS_ADDR": "", "INTERNAL_ADDR": internal, "INTERNAL_TOKEN": token,
	})
	if err == nil {
		p.ingest, err = p.run(ctx, "ingest", map[string]string{
			"DSN": ingestDSN, "METRICS_ADDR": "", "RELAY_URL": "http://" + internal, "RELAY_TOKEN": token,
		})
	}
	return err
}

// run builds a service, starts it and waits until it is ready.
func (p *programs) run(ctx context.Context, name string, variables map[string]string) (*program, error) {
	path := filepath.Join(p.dir, name)
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", path, "verbatim.internal/services/"+name+"/cmd/"+name)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build %s: %w: %s", name, err, out)
	}
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	s := &program{cmd: exec.Command(path, "serve"), url: "http://" + address} //nolint:noctx // it is stopped by stop
	prefix := "VERBATIM_" + strings.ToUpper(name) + "_"
	s.cmd.Env = []string{prefix + "ADDR=" + address}
	for variable, value := range variables {
		s.cmd.Env = append(s.cmd.Env, prefix+variable+"="+value)
	}
	s.cmd.Stderr = &s.log
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	tick := time.NewTicker(readyPeriod)
	defer tick.Stop()
	for waited := time.Now(); ; {
		answer, err := http.Get(s.url + "/readyz") //nolint:noctx // it answers at once or not at all
		if err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return s, nil
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return s, ctx.Err()
		}
		if time.Since(waited) > readyTimeout {
			return s, fmt.Errorf("%s is not ready: %s", name, s.log.String())
		}
	}
}

// stop ends both, ingest first, as a deployment would, and removes what was built.
func (p *programs) stop() error {
	var err error
	for _, s := range []*program{p.ingest, p.auditview} {
		if s == nil {
			continue
		}
		_ = s.cmd.Process.Signal(os.Interrupt)
		if waited := s.cmd.Wait(); waited != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", filepath.Base(s.cmd.Path), waited))
		}
	}
	return errors.Join(err, os.RemoveAll(p.dir))
}

// cpu returns the time that both services have spent computing.
func (p *programs) cpu() (time.Duration, error) {
	var total time.Duration
	for _, s := range []*program{p.ingest, p.auditview} {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
		if err != nil {
			return 0, err
		}
		// What follows the name, which is in parentheses: state is the third field.
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		const utime, stime = 14 - 3, 15 - 3
		for _, field := range []int{utime, stime} {
			ticks, err := strconv.ParseInt(fields[field], 10, 64)
			if err != nil {
				return 0, err
			}
			total += time.Duration(ticks) * time.Second / clockTicks
		}
	}
	return total, nil
}

// memory returns a line of both services' /proc/PID/status, VmRSS or VmHWM, in bytes.
func (p *programs) memory(line string) (int64, error) {
	var total int64
	for _, s := range []*program{p.ingest, p.auditview} {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
		if err != nil {
			return 0, err
		}
		_, rest, _ := strings.Cut(string(status), line+":")
		kilobytes, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
		if err != nil {
			return 0, err
		}
		total += kilobytes << 10
	}
	return total, nil
}

// freeAddress returns a loopback address that nobody listens on at the moment.
func freeAddress(ctx context.Context) (string, error) {
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
