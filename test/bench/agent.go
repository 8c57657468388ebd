package main

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/google/uuid"
)

// agent is who writes: a session with its token, its client and its route.
type agent struct{ session, token, route string }

// usual is the agent of all clients but those that measure agents.
var usual = agent{session: session, token: agentToken, route: route}

// agentWriter appends to archives of its own over HTTP.
type agentWriter struct {
	url    string
	who    agent
	conn   *keptAlive
	batch  *batch
	stored *atomic.Int64

	id                      string
	last, bytes, batchBytes int // of the archive before the batch, and of the batch
	path                    string
	body                    []byte
}

// newAgents returns clients of an ingest, each with a connection and archives of its own.
func newAgents(url string, clients, size int, stored *atomic.Int64) []writer {
	writers := make([]writer, clients)
	for i := range writers {
		writers[i] = &agentWriter{url: url, who: usual, batch: newBatch(size), stored: stored}
	}
	return writers
}

// connect makes a new connection for the round: between rounds, one may rest for so long
// that the service closes it.
func (w *agentWriter) connect(ctx context.Context) error {
	var err error
	w.conn, err = dial(ctx, w.url, w.who.token)
	return err
}

func (w *agentWriter) disconnect() { w.conn.close() }

func (w *agentWriter) prepare(context.Context) error {
	if w.id == "" || !w.batch.fits(w.last, w.bytes) {
		if err := w.create(); err != nil {
			return err
		}
	}
	w.fill()
	return nil
}

// create begins a new archive.
func (w *agentWriter) create() error {
	var header struct {
		ConversationID string `json:"conversation_id"`
	}
	body := `{"client_archive_id":"` + uuid.NewString() + `","client_conversation_id":"bench","route":"` + w.who.route +
		`","member_session_ids":["` + w.who.session + `"]}`
	if err := w.conn.do(http.MethodPost, archivesPath, []byte(body), &header); err != nil {
		return fmt.Errorf("create: %w", err)
	}
	w.id, w.last, w.bytes = header.ConversationID, 0, 0
	w.path = archivesPath + "/" + w.id + "/events"
	return nil
}

// fill makes the next batch of the archive ready.
func (w *agentWriter) fill() {
	w.batchBytes = w.batch.fill(w.last)
	w.body = w.batch.appendJSON(w.body[:0])
}

func (w *agentWriter) send(context.Context) error {
	var ack struct {
		LastSequence int `json:"last_sequence"`
	}
	if err := w.conn.do(http.MethodPost, w.path, w.body, &ack); err != nil {
		return fmt.Errorf("append: %w", err)
	}
	w.last += w.batch.size()
	w.bytes += w.batchBytes
	if ack.LastSequence != w.last {
		return fmt.Errorf("append: acknowledged up to %d instead of %d", ack.LastSequence, w.last)
	}
	w.stored.Add(int64(w.batch.size()))
	return nil
}
