// Package demo plays a conversation of two members against a running pair of
// services, over HTTP and with the members' own bearers, and proves that an
// administrator reads back the very bytes that were written. Then it plays the
// execution that the conversation's run caused, and replays it. It is for people:
// what it prints is not an interface.
package demo

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"verbatim.internal/pkg/contracts/httpapi"
)

const (
	requestTimeout = 30 * time.Second
	visibleWithin  = 30 * time.Second
)

// Config says where the services are and how to prepare them.
type Config struct {
	// Ingest and Auditview are the services' base URLs.
	Ingest, Auditview string
	// ApplyRegistry and ApplyAdmins apply a file as `verbatim apply` and `verbatim admin apply` do.
	ApplyRegistry, ApplyAdmins func(ctx context.Context, file []byte) error
	// Out gets the demo's text.
	Out io.Writer
	// Color allows colour codes, which only a terminal understands.
	Color bool
	// Now reads the clock.
	Now func() time.Time
}

// demo is one run.
type demo struct {
	Config
	print   printer
	cast    cast
	story   []batch
	creator client
	second  client
	admin   client
	// orchestrator is the backend of the client.
	orchestrator client
	archiveID    string
}

// Run plays the conversation and returns when the commands to try have been
// printed. Every run makes sessions, tokens, runs and an archive of its own, so
// that it may be repeated on the same data. An error is one sentence.
func Run(ctx context.Context, c Config) error {
	people, err := newCast(c.Now())
	if err != nil {
		return err
	}
	web := &http.Client{Timeout: requestTimeout, Transport: &http.Transport{}} // through no proxy
	d := &demo{
		Config: c, print: newPrinter(c.Out, c.Color), cast: people, story: tell(people),
		creator: client{http: web, base: c.Ingest, token: people.members[0].token},
		second:  client{http: web, base: c.Ingest, token: people.members[1].token},
		admin:   client{http: web, base: c.Auditview, token: people.adminToken},

		orchestrator: client{http: web, base: c.Ingest, token: people.clientToken},
	}
	d.print.title("Verbatim demo", "one conversation, two members, every word back; and the delivery that it caused, step by step")
	for _, step := range []func(context.Context) error{d.prepare, d.enrol, d.write, d.read, d.deliver} {
		if err := step(ctx); err != nil {
			return fmt.Errorf("the demo failed: %w", err)
		}
	}
	d.printCommands()
	return d.print.err
}

// prepare applies the demo's registry and administrator.
func (d *demo) prepare(ctx context.Context) error {
	registry, err := d.cast.registry()
	if err != nil {
		return err
	}
	if err := d.ApplyRegistry(ctx, registry); err != nil {
		return err
	}
	admins, err := d.cast.admins()
	if err != nil {
		return err
	}
	if err := d.ApplyAdmins(ctx, admins); err != nil {
		return err
	}
	d.print.step(done, "registry", "client %s, route %s, 2 sessions, 2 runs; administrator %s", clientID, routeKey, adminName)
	return nil
}

// enrol creates the archive and lets both members confirm, each with its own bearer.
func (d *demo) enrol(ctx context.Context) error {
	first, second := d.cast.members[0], d.cast.members[1]
	create := map[string]any{
		"client_archive_id":      uuid.NewString(),
		"client_conversation_id": d.cast.conversation,
		"route":                  routeKey,
		"member_session_ids":     []string{first.session, second.session},
		"member_labels":          map[string]string{first.session: first.label, second.session: second.label},
	}
	var header httpapi.HeaderAnswer
	if err := d.creator.call(ctx, http.MethodPost, archivesPath, create, &header); err != nil {
		return err
	}
	d.archiveID = header.ConversationID
	d.print.step(done, "archive", "%s created by %s: %s, %d of %d confirmed", d.archiveID, first.label, header.State, header.ConfirmedCount, header.MemberCount)
	for _, member := range []struct {
		client
		label string
	}{{d.creator, first.label}, {d.second, second.label}} {
		if err := member.call(ctx, http.MethodPost, archivesPath+"/"+d.archiveID+"/confirm", struct{}{}, &header); err != nil {
			return err
		}
		d.print.step(done, "confirm", "%s, with its own bearer: %s, %d of %d", member.label, header.State, header.ConfirmedCount, header.MemberCount)
	}
	if header.State != "ready" {
		return fmt.Errorf("the archive is %s after both members confirmed", header.State)
	}
	return nil
}

// write appends the story. One batch loses its acknowledgement and is sent again.
func (d *demo) write(ctx context.Context) error {
	path := archivesPath + "/" + d.archiveID + "/events"
	last := 0
	for i, b := range d.story {
		name, count := "batch "+strconv.Itoa(i+1), len(b.Events)
		last += count
		how := ""
		if b.loseAck {
			if err := d.creator.loseAnswer(ctx, path, b); err != nil {
				return err
			}
			d.print.step(lost, name, "%d events, and the connection broke before the acknowledgement was read", count)
			how = ", the same batch sent again"
		}
		var ack httpapi.Ack
		if err := d.creator.call(ctx, http.MethodPost, path, b, &ack); err != nil {
			return err
		}
		if ack.LastSequence != last {
			return fmt.Errorf("batch %d was acknowledged up to %d instead of %d", i+1, ack.LastSequence, last)
		}
		d.print.step(done, name, "%d events%s: acknowledged up to %d", count, how, ack.LastSequence)
	}
	return nil
}

// read waits for auditview, reads everything back and compares.
func (d *demo) read(ctx context.Context) error {
	want := events(d.story)
	took, err := d.awaitVisible(ctx, len(want))
	if err != nil {
		return err
	}
	d.print.step(done, "visible", "all %d events, %s after the last acknowledgement", len(want), took.Round(time.Millisecond))
	got, err := d.readBack(ctx)
	if err != nil {
		return err
	}
	d.print.step(done, "read back", "%d events in %d pages: each one there once, in order", len(got.events), got.pages)
	if err := compare(want, got.events); err != nil {
		return err
	}
	in, out := digest(want), digest(got.events)
	d.print.blank()
	d.print.line("  text in   %s", in)
	d.print.line("  text out  %s", out)
	if in != out {
		return fmt.Errorf("the text that was read back is not the text that was written")
	}
	d.print.step(done, "proof", "the same bytes")
	d.printTranscript(got)
	return nil
}

// oneLine keeps an error a sentence.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
