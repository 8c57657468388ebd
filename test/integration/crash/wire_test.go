package crash_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	commitMessage  = []byte("commit\x00") // of the client: a simple query
	commitComplete = []byte("COMMIT\x00") // of the server: the transaction is durable
)

// wire is a plain connection to a database that can be cut at a commit: before the
// server learns of it, or after it has committed and before the client learns of it.
// Safe for concurrent use.
type wire struct {
	listener net.Listener
	target   string
	running  sync.WaitGroup

	mu     sync.Mutex
	before func() // called once, in place of passing the commit on
	after  func() // called once, in place of passing the server's answer on
	conns  map[net.Conn]bool
}

// newWire returns a wire to the database, and the DSN that leads through it.
func newWire(t *testing.T, dsn string) (*wire, string) {
	t.Helper()
	u, err := url.Parse(dsn)
	require.NoError(t, err)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	w := &wire{listener: listener, target: u.Host, conns: map[net.Conn]bool{}}
	w.running.Go(w.accept)
	t.Cleanup(w.close)
	u.Host = listener.Addr().String()
	return w, u.String()
}

// cutBeforeCommit cuts the next commit's connection before the server gets it, and calls f first.
func (w *wire) cutBeforeCommit(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.before = f
}

// cutAfterCommit cuts the next commit's connection once the server has committed, and calls f first.
func (w *wire) cutAfterCommit(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.after = f
}

// take returns a hook and forgets it.
func (w *wire) take(hook *func()) func() {
	w.mu.Lock()
	defer w.mu.Unlock()
	f := *hook
	*hook = nil
	return f
}

func (w *wire) accept() {
	for {
		client, err := w.listener.Accept()
		if err != nil {
			return // closed
		}
		server, err := new(net.Dialer).DialContext(context.Background(), "tcp", w.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		w.mu.Lock()
		w.conns[client], w.conns[server] = true, true
		w.mu.Unlock()
		w.running.Go(func() {
			w.carry(client, server)
			w.mu.Lock()
			defer w.mu.Unlock()
			delete(w.conns, client)
			delete(w.conns, server)
		})
	}
}

// carry passes on what both sides say, until one of them ends or the wire is cut.
func (w *wire) carry(client, server net.Conn) {
	var both sync.WaitGroup
	both.Go(func() {
		defer closeBoth(client, server)
		w.copy(server, client, func(said []byte) bool {
			if !bytes.Contains(said, commitMessage) {
				return true
			}
			f := w.take(&w.before)
			if f != nil {
				f()
			}
			return f == nil
		})
	})
	both.Go(func() {
		defer closeBoth(client, server)
		w.copy(client, server, func(said []byte) bool {
			if !bytes.Contains(said, commitComplete) {
				return true
			}
			f := w.take(&w.after)
			if f != nil {
				f()
			}
			return f == nil
		})
	})
	both.Wait()
}

// copy passes on what pass lets through; it ends when pass says no.
func (w *wire) copy(to io.Writer, from io.Reader, pass func(said []byte) bool) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if !pass(buffer[:n]) {
				return
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func closeBoth(a, b net.Conn) {
	_ = a.Close()
	_ = b.Close()
}

func (w *wire) close() {
	_ = w.listener.Close()
	w.mu.Lock()
	for conn := range w.conns {
		_ = conn.Close()
	}
	w.mu.Unlock()
	w.running.Wait()
}
