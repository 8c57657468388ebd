package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"verbatim.internal/pkg/platform/config"
	"verbatim.internal/pkg/platform/transport"
	"verbatim.internal/services/auditview"
	"verbatim.internal/services/ingest"
)

const (
	// maxConns is how many database connections the floor and ingest have alike: ingest's default.
	maxConns = 16

	session = "123e4567-e89b-42d3-a456-426614174001"
	agent   = "bha_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	auditor = "bva_VVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVV"

	registry = `{"clients":[{"app_id":"bench","name":"Bench","allowed_routes":["*"],"token":"bhk_KKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKK"}],
		"routes":[{"route_key":"orders","name":"Orders","agent_access":true}],
		"sessions":[{"session_id":"` + session + `","client_app_id":"bench","device_label":"bench","principal":{"id":"bench","tenant":"bench","roles":["manager"]},
			"on_behalf_of":"bench","allowed_routes":["*"],"access_token":"` + agent + `",
			"access_expires_at":"2099-01-01T00:00:00Z","refresh_expires_at":"2099-01-01T00:00:00Z"}]}`
	admins = `{"admins":[{"name":"bench","token":"` + auditor + `","permissions":["runs:read"]}]}`

	archives    = "/agent-api/v1/conversation-audits"
	stopTimeout = 30 * time.Second
)

// deployment is ingest with its real listener, and with or without auditview.
type deployment struct {
	ingest, auditview string // URLs; auditview "" without it
	client            *http.Client
	stop              func() error
}

// deploy starts the services. Without auditview the relay has nobody to send to,
// and rests.
func deploy(ctx context.Context, s server, withAuditview bool) (*deployment, error) {
	log := slog.New(slog.DiscardHandler)
	if _, err := ingest.Apply(ctx, config.Secret(s.ingest), []byte(registry)); err != nil {
		return nil, err
	}
	if _, err := auditview.ApplyAdmins(ctx, config.Secret(s.auditview), []byte(admins)); err != nil {
		return nil, err
	}
	local := transport.NewLocal(nil)
	d := &deployment{client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}}
	var stops []func(context.Context) error
	d.stop = func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		var err error
		d.client.CloseIdleConnections()
		for _, stop := range stops {
			err = errors.Join(err, stop(ctx))
		}
		return errors.Join(err, local.Close())
	}
	if withAuditview {
		cfg, err := auditview.LoadConfig(map[string]string{
			"VERBATIM_AUDITVIEW_DSN": s.auditview, "VERBATIM_AUDITVIEW_ADDR": "127.0.0.1:0", "VERBATIM_AUDITVIEW_METRICS_ADDR": "",
		})
		if err != nil {
			return nil, err
		}
		view, err := auditview.New(cfg, log, auditview.WithSubscriber(local))
		if err != nil {
			return nil, err
		}
		if err := view.Start(ctx); err != nil {
			return nil, err
		}
		d.auditview = view.URL()
		stops = append(stops, view.Stop)
	}
	cfg, err := ingest.LoadConfig(map[string]string{
		"VERBATIM_INGEST_DSN": s.ingest, "VERBATIM_INGEST_ADDR": "127.0.0.1:0", "VERBATIM_INGEST_METRICS_ADDR": "",
		"VERBATIM_INGEST_MAX_CONNS": strconv.Itoa(maxConns),
	})
	if err != nil {
		return nil, errors.Join(err, d.stop())
	}
	svc, err := ingest.New(cfg, log, ingest.WithPublisher(local))
	if err != nil {
		return nil, errors.Join(err, d.stop())
	}
	if err := svc.Start(ctx); err != nil {
		return nil, errors.Join(err, d.stop())
	}
	d.ingest = svc.URL()
	stops = append([]func(context.Context) error{svc.Stop}, stops...) // ingest first
	return d, nil
}

// post sends a body as the agent and decodes the answer, which must be a 200.
func (d *deployment) post(ctx context.Context, path string, body []byte, answer any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, d.ingest+archives+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+agent)
	return d.do(r, answer)
}

// get asks auditview as the administrator.
func (d *deployment) get(ctx context.Context, path string, answer any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, d.auditview+path, http.NoBody)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+auditor)
	return d.do(r, answer)
}

func (d *deployment) do(r *http.Request, answer any) error {
	resp, err := d.client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d: %s", resp.StatusCode, body)
	}
	return json.Unmarshal(body, answer)
}

// agentWriter appends to archives of its own over HTTP.
type agentWriter struct {
	d     *deployment
	batch int

	id       string
	sequence int
	bytes    int
	body     bytes.Buffer
}

func (d *deployment) writers(clients, batch int) []writer {
	writers := make([]writer, clients)
	for i := range writers {
		writers[i] = &agentWriter{d: d, batch: batch}
	}
	return writers
}

func (w *agentWriter) prepare(ctx context.Context) error {
	if w.id != "" && fits(w.sequence, w.bytes, w.batch) {
		return nil
	}
	var header struct {
		ConversationID string `json:"conversation_id"`
	}
	body := `{"client_archive_id":"` + uuid.NewString() + `","client_conversation_id":"bench","route":"orders","member_session_ids":["` + session + `"]}`
	if err := w.d.post(ctx, "", []byte(body), &header); err != nil {
		return err
	}
	w.id, w.sequence, w.bytes = header.ConversationID, 1, 0
	start := `{"events":[{"event_id":"event-1","sequence":1,"client_turn_id":"turn-1","kind":"turn_start"}]}`
	return w.d.post(ctx, "/"+w.id+"/events", []byte(start), new(acknowledgement))
}

type acknowledgement struct {
	LastSequence int `json:"last_sequence"`
}

func (w *agentWriter) send(ctx context.Context) error {
	w.body.Reset()
	w.body.WriteString(`{"events":[`)
	for i := range w.batch {
		if i > 0 {
			w.body.WriteByte(',')
		}
		n := strconv.Itoa(w.sequence + i + 1)
		w.body.WriteString(`{"event_id":"event-` + n + `","sequence":` + n + `,"client_turn_id":"turn-1","kind":"user_message","content":"`)
		w.body.WriteString(text)
		w.body.WriteString(`"}`)
	}
	w.body.WriteString(`]}`)
	var ack acknowledgement
	if err := w.d.post(ctx, "/"+w.id+"/events", w.body.Bytes(), &ack); err != nil {
		return err
	}
	w.sequence += w.batch
	w.bytes += w.batch * len(text)
	if ack.LastSequence != w.sequence {
		return fmt.Errorf("acknowledged up to %d instead of %d", ack.LastSequence, w.sequence)
	}
	return nil
}
