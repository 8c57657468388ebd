package kit

import (
	"bytes"
	"sync"
)

// Logs keeps everything that the services log. It is safe for concurrent use.
type Logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write keeps p.
func (l *Logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns all that was written.
func (l *Logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
