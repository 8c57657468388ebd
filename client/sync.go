package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"go.etcd.io/bbolt"
)

const archivesPath = "/agent-api/v1/conversation-audits"

const (
	codeNotReady     = "conversation_audit_not_ready"
	schemaHeader     = "bailing.agent-conversation-audit.v1"
	schemaAck        = "bailing.agent-conversation-audit-ack.v1"
	schemaCapability = "bailing.agent-conversation-audit-capabilities.v1"
)

// errNotReady is told apart from a refusal only inside one attempt, which confirms again.
var errNotReady = errors.New("verbatim: the hub says that not all members are confirmed")

// Sync brings the archive to the hub: creates it, confirms each member with its own
// bearer, and appends what is not acknowledged, batch by batch. It returns nil when
// everything that was in the spool when it looked last is acknowledged, and otherwise goes
// on over what may pass until ctx ends. Wherever it is cut off, the next Sync continues.
//
// Errors: RefusedError, kept until Resume; ErrUnsupported; ErrReauthorize, naming the
// session; ErrClosed; the context's, together with the last failure. Nothing is dropped
// with any of them.
func (a *Archive) Sync(ctx context.Context) error {
	if err := a.sync.acquire(ctx); err != nil {
		return err
	}
	defer a.sync.release()
	var last error
	for failures := 0; ; {
		progress, err := a.attempt(ctx)
		if !errors.Is(err, ErrUnavailable) {
			return withLast(ctx, err, last)
		}
		last = err
		if progress {
			failures = 0
		}
		if ended := wait(ctx, a.spool.hub.pauses.pause(failures, err)); ended != nil {
			return fmt.Errorf("%w: %w", ended, err)
		}
		failures++
	}
}

// attempt goes as far as it gets without a failure; the caller holds the lock.
func (a *Archive) attempt(ctx context.Context) (progress bool, err error) {
	confirmedAgain := false
	for {
		r, err := a.load()
		if err != nil {
			return progress, err
		}
		if r.Refusal != nil {
			return progress, r.Refusal
		}
		done, err := a.step(ctx, r)
		if errors.Is(err, errNotReady) && !confirmedAgain {
			confirmedAgain = true
			err = a.change("not ready", func(_ *bbolt.Tx, r *archiveRecord) error {
				r.Ready = false
				for i := range r.Members {
					r.Members[i].Confirmed = false
				}
				return nil
			})
		}
		if err != nil {
			return progress, a.keep(err)
		}
		if done {
			return progress, nil
		}
		progress = true
	}
}

// step makes the next request, and reports whether none is needed.
func (a *Archive) step(ctx context.Context, r *archiveRecord) (done bool, err error) {
	if r.HubID == "" {
		return false, a.create(ctx, r)
	}
	if !r.Ready {
		for _, m := range r.Members {
			if !m.Confirmed {
				return false, a.confirm(ctx, r, m.SessionID)
			}
		}
		return false, errNotReady
	}
	if r.Acknowledged < r.Last {
		return false, a.send(ctx, r)
	}
	return true, nil
}

// keep stores what an error says of the archive for as long as it holds.
func (a *Archive) keep(err error) error {
	if errors.Is(err, errNotReady) {
		err = &RefusedError{Status: http.StatusConflict, Code: codeNotReady, Message: "not all members are confirmed, though each of them has been"}
	}
	var refusal *RefusedError
	isRefused, isUnsupported := errors.As(err, &refusal), errors.Is(err, ErrUnsupported)
	if !isRefused && !isUnsupported {
		return err
	}
	stored := a.change("failure", func(_ *bbolt.Tx, r *archiveRecord) error {
		r.Refusal = refusal
		r.Unsupported = isUnsupported
		return nil
	})
	if stored != nil {
		return errors.Join(err, stored)
	}
	return err
}

// headerAnswer answers a creation or a confirmation.
type headerAnswer struct {
	ConversationID       string `json:"conversation_id"`
	ClientArchiveID      string `json:"client_archive_id"`
	ClientConversationID string `json:"client_conversation_id"`
	State                string `json:"state"`
	MemberCount          int    `json:"member_count"`
	LastSequence         int    `json:"last_sequence"`
}

// create makes the archive at the hub, or finds the one that an earlier attempt made. An
// archive whose members have bindings of their own is created only by a hub that says it
// can: it is never sent as anything less.
func (a *Archive) create(ctx context.Context, r *archiveRecord) error {
	if r.V2 {
		if err := a.probe(ctx, r); err != nil {
			return err
		}
	}
	var h headerAnswer
	if err := a.ask(ctx, "create", r.Creator, post(archivesPath, r.Create), schemaHeader, &h); err != nil {
		return err
	}
	return a.storeHeader("create", r.Creator, h)
}

func (a *Archive) probe(ctx context.Context, r *archiveRecord) error {
	var c struct {
		CrossBindingMembers bool   `json:"cross_binding_members"`
		MemberBindings      string `json:"member_bindings"`
	}
	if err := a.ask(ctx, "probe", r.Creator, get(archivesPath+"/capabilities"), schemaCapability, &c); err != nil {
		return err
	}
	if !c.CrossBindingMembers || c.MemberBindings != "session-client-route.v1" {
		return ErrUnsupported
	}
	return nil
}

// confirm confirms a member with its own bearer.
func (a *Archive) confirm(ctx context.Context, r *archiveRecord, sessionID string) error {
	var h headerAnswer
	path := archivesPath + "/" + r.HubID + "/confirm"
	if err := a.ask(ctx, "confirm", sessionID, post(path, []byte("{}")), schemaHeader, &h); err != nil {
		return err
	}
	return a.storeHeader("confirm", sessionID, h)
}

// storeHeader keeps what a creation or a confirmation answered, and that the member whose
// bearer asked is confirmed.
func (a *Archive) storeHeader(step, sessionID string, h headerAnswer) error {
	return a.change(step, func(_ *bbolt.Tx, r *archiveRecord) error {
		id, ok := parseUUID(h.ConversationID)
		if client, _ := parseUUID(h.ClientArchiveID); !ok || client != a.id || h.ClientConversationID != r.ConversationID ||
			h.MemberCount != len(r.Members) || r.HubID != "" && r.HubID != id {
			return &unavailableError{reason: "the answer speaks of another archive"}
		}
		if h.LastSequence > r.Last {
			return diverged()
		}
		r.HubID, r.Unsupported = id, false
		r.member(sessionID).Confirmed = true
		r.Ready = h.State == "ready"
		return nil
	})
}

func diverged() error {
	return &RefusedError{Code: CodeDiverged, Message: "the hub holds events of this archive that the spool lacks"}
}

// send sends the next batch. Its bounds are stored first, so that it is the same until it
// is acknowledged.
func (a *Archive) send(ctx context.Context, r *archiveRecord) error {
	body, last, err := a.batch(r)
	if err != nil {
		return err
	}
	if r.BatchLast == 0 {
		err := a.change("batch", func(_ *bbolt.Tx, r *archiveRecord) error {
			r.BatchLast = last
			return nil
		})
		if err != nil {
			return err
		}
	}
	var ack struct {
		ConversationID string `json:"conversation_id"`
		LastSequence   int    `json:"last_sequence"`
	}
	if err := a.ask(ctx, "upload", r.Creator, post(archivesPath+"/"+r.HubID+"/events", body), schemaAck, &ack); err != nil {
		var refusal *RefusedError
		if errors.As(err, &refusal) && refusal.Code == codeNotReady {
			return errNotReady
		}
		return err
	}
	return a.change("acknowledgement", func(_ *bbolt.Tx, r *archiveRecord) error {
		if id, _ := parseUUID(ack.ConversationID); id != r.HubID || ack.LastSequence < last {
			return &unavailableError{reason: "the acknowledgement is of something else"}
		}
		if ack.LastSequence > r.Last {
			return diverged()
		}
		// What the hub holds beyond the batch is asked for too: it may be another's.
		r.Acknowledged, r.BatchLast = last, 0
		r.Unsupported = false
		return nil
	})
}

// batch returns the body of the next append and the sequence that it ends with. The
// stored events go out as they are.
func (a *Archive) batch(r *archiveRecord) (body []byte, last int, err error) {
	const frame = `{"events":[]}`
	body = []byte(`{"events":[`)
	err = a.spool.view(func(tx *bbolt.Tx) error {
		events := tx.Bucket(bucketEvents).Bucket([]byte(a.id))
		if events == nil {
			return fmt.Errorf("%w: the archive", ErrNotFound)
		}
		text := 0
		for next := r.Acknowledged + 1; next <= r.Last && (r.BatchLast == 0 || next <= r.BatchLast); next++ {
			value := events.Get(sequenceKey(next))
			var w wireEvent
			if err := json.Unmarshal(value, &w); err != nil {
				return err
			}
			text += len(w.Content)
			isFull := next > r.Acknowledged+maxBatchEvents || text > maxBatchText || len(body)+len(value)+len(frame) > maxEnvelopeBytes
			if isFull && r.BatchLast == 0 && last > 0 {
				break
			}
			if last > 0 {
				body = append(body, ',')
			}
			body, last = append(body, value...), next
		}
		return nil
	})
	return append(body, "]}"...), last, err
}

// ask makes one attempt with a member's own bearer and decodes the answer.
func (a *Archive) ask(ctx context.Context, step, sessionID string, q request, schema string, v any) error {
	session, err := a.spool.Session(sessionID)
	if err != nil {
		return err
	}
	a.spool.step(step + ": before send")
	in, err := session.call(ctx, q)
	a.spool.step(step + ": answered")
	if err != nil {
		return err
	}
	return in.decode(schema, v)
}
