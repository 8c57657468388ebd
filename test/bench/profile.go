package main

import (
	"errors"
	"os"
	"path/filepath"
	"runtime/pprof"
)

// profile is what one round of one variant costs: NAME.cpu, and the allocations since
// the program's start before and after it, NAME.allocs-base and NAME.allocs, for
// `go tool pprof -diff_base`. The clients' own work has the label side=client.
type profile struct {
	cpu    *os.File
	prefix string
}

// startProfile begins one; with an empty dir it returns nil, which does nothing.
func startProfile(dir, name string) (*profile, error) {
	if dir == "" {
		return nil, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	p := &profile{prefix: filepath.Join(dir, name)}
	if err := p.allocs(".allocs-base"); err != nil {
		return nil, err
	}
	var err error
	if p.cpu, err = os.Create(p.prefix + ".cpu"); err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(p.cpu); err != nil {
		return nil, errors.Join(err, p.cpu.Close())
	}
	return p, nil
}

// stop writes the profile out.
func (p *profile) stop() error {
	if p == nil {
		return nil
	}
	pprof.StopCPUProfile()
	return errors.Join(p.cpu.Close(), p.allocs(".allocs"))
}

func (p *profile) allocs(suffix string) error {
	f, err := os.Create(p.prefix + suffix)
	if err != nil {
		return err
	}
	return errors.Join(pprof.Lookup("allocs").WriteTo(f, 0), f.Close())
}
