// Command ryuk speaks the protocol of Testcontainers' resource reaper, so that
// testcontainers-go cleans up after a killed test run on a machine that cannot
// pull the public reaper image. Standard library only.
//
// A client connects to TCP 8080 and sends lines of Docker filters
// ("label=a=b&label=c=d"), each answered with "ACK". When the last client has
// been gone for RYUK_RECONNECTION_TIMEOUT, all that matches any of the lines is
// removed, and the program ends. When no client comes at all, it ends after
// RYUK_CONNECTION_TIMEOUT.
package main

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// reaper collects filters for as long as clients are connected.
type reaper struct {
	first, again time.Duration // how long to wait for the first client, and for another one

	mu      sync.Mutex
	filters map[string]bool
}

// collect serves clients until none has been connected for long enough, and
// returns the filters that they sent, sorted.
func (r *reaper) collect(l net.Listener) []string {
	change, stop := make(chan int), make(chan struct{})
	defer close(stop)
	tell := func(d int) {
		select {
		case change <- d:
		case <-stop:
		}
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			tell(+1)
			go func() {
				r.serve(c)
				tell(-1)
			}()
		}
	}()
	clients := 0
	for timer := time.NewTimer(r.first); ; {
		select {
		case d := <-change:
			if clients += d; clients > 0 {
				timer.Stop()
			} else {
				timer.Reset(r.again)
			}
		case <-timer.C:
			r.mu.Lock()
			defer r.mu.Unlock()
			return slices.Sorted(maps.Keys(r.filters))
		}
	}
}

func (r *reaper) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	for in := bufio.NewScanner(c); in.Scan(); {
		line := strings.TrimSpace(in.Text())
		if line == "" {
			continue
		}
		r.mu.Lock()
		r.filters[line] = true
		r.mu.Unlock()
		if _, err := fmt.Fprintln(c, "ACK"); err != nil {
			return
		}
	}
}

// env returns the positive duration in a variable, or def.
func env(name string, def time.Duration) time.Duration {
	if d, err := time.ParseDuration(os.Getenv(name)); err == nil && d > 0 {
		return d
	}
	return def
}

func main() {
	port := os.Getenv("RYUK_PORT")
	if port == "" {
		port = "8080"
	}
	ctx := context.Background()
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", ":"+port)
	if err != nil {
		log.Fatal(err)
	}
	log.Print("Started") // testcontainers-go waits for this line
	r := &reaper{
		first:   env("RYUK_CONNECTION_TIMEOUT", time.Minute),
		again:   env("RYUK_RECONNECTION_TIMEOUT", 10*time.Second),
		filters: map[string]bool{},
	}
	docker := socket("/var/run/docker.sock")
	for _, filter := range r.collect(l) {
		done, err := docker.prune(ctx, filter)
		if err != nil {
			log.Printf("%s: %v", filter, err)
		}
		log.Printf("%s: removed %d containers, %d networks, %d volumes, %d images",
			filter, done.containers, done.networks, done.volumes, done.images)
	}
}
