package main

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// send connects, sends the lines and waits for each acknowledgement.
func send(t *testing.T, l net.Listener, lines ...string) net.Conn {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	in := bufio.NewScanner(c)
	for _, line := range lines {
		if _, err := fmt.Fprintf(c, "%s\n", line); err != nil {
			t.Fatal(err)
		}
		if !in.Scan() || in.Text() != "ACK" {
			t.Fatalf("answer to %q: %q", line, in.Text())
		}
	}
	return c
}

func TestCollectWaitsForTheLastClient(t *testing.T) {
	t.Parallel()
	l := listen(t)
	r := &reaper{first: time.Minute, again: 50 * time.Millisecond, filters: map[string]bool{}}
	got := make(chan []string, 1)
	go func() { got <- r.collect(l) }()
	one := send(t, l, "label=b=2", "label=a=1&label=c=3")
	two := send(t, l, "label=b=2")
	_ = one.Close()
	select {
	case f := <-got:
		t.Fatalf("ended with a client connected: %v", f)
	case <-time.After(200 * time.Millisecond):
	}
	_ = two.Close()
	if f := <-got; !slices.Equal(f, []string{"label=a=1&label=c=3", "label=b=2"}) {
		t.Fatalf("filters: %v", f)
	}
}

func TestCollectEndsWithoutClients(t *testing.T) {
	t.Parallel()
	r := &reaper{first: time.Millisecond, again: time.Minute, filters: map[string]bool{}}
	if f := r.collect(listen(t)); len(f) != 0 {
		t.Fatalf("filters: %v", f)
	}
}

// fake answers as the engine does, and notes what was asked to be removed.
func fake(t *testing.T) (*engine, func() []string) {
	t.Helper()
	var mu sync.Mutex
	var deleted []string
	answers := map[string]string{
		"/containers/json": `[{"Id":"c1"},{"Id":"stuck"}]`,
		"/networks":        `[{"Id":"n1"}]`,
		"/volumes":         `{"Volumes":[{"Name":"v1"}]}`,
		"/images/json":     `[]`,
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, "/stuck"):
			http.Error(w, "stuck", http.StatusInternalServerError)
		case r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, "/v1"):
			http.NotFound(w, r)
		case r.Method == http.MethodDelete:
			mu.Lock()
			deleted = append(deleted, r.URL.Path)
			mu.Unlock()
			w.WriteHeader(http.StatusNoContent)
		case r.FormValue("filters") != `{"label":["a=1","b=2"]}`:
			http.Error(w, "filters: "+r.FormValue("filters"), http.StatusBadRequest)
		default:
			_, _ = fmt.Fprint(w, answers[r.URL.Path])
		}
	}))
	t.Cleanup(srv.Close)
	return &engine{base: srv.URL, client: srv.Client()}, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return deleted
	}
}

func TestPruneGoesOnAfterAnError(t *testing.T) {
	t.Parallel()
	e, deleted := fake(t)
	done, err := e.prune(t.Context(), "label=a=1&label=b=2")
	if err == nil || !strings.Contains(err.Error(), "stuck") {
		t.Fatalf("error: %v", err)
	}
	if want := (removed{containers: 1, networks: 1, volumes: 1}); done != want {
		t.Fatalf("removed %+v, want %+v", done, want)
	}
	if got := deleted(); !slices.Equal(got, []string{"/containers/c1", "/networks/n1"}) {
		t.Fatalf("deleted: %v", got)
	}
}

func TestPruneRefusesAFilterWithoutLabels(t *testing.T) {
	t.Parallel()
	e, deleted := fake(t)
	for _, filter := range []string{"", "name=x", "%zz"} {
		if _, err := e.prune(t.Context(), filter); err == nil {
			t.Errorf("%q was accepted", filter)
		}
	}
	if got := deleted(); len(got) != 0 {
		t.Fatalf("deleted: %v", got)
	}
}
