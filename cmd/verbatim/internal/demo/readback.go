package demo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"time"

	"verbatim.internal/pkg/contracts/httpapi"
)

const (
	pageSize = 5
	pollEach = 10 * time.Millisecond
)

// transcript is what the administrator read.
type transcript struct {
	header  httpapi.Header
	members []httpapi.Member
	events  []event
	threads map[int]int64 // by sequence of the run link
	pages   int
}

// awaitVisible asks auditview until it shows the archive up to the last sequence.
func (d *demo) awaitVisible(ctx context.Context, last int) (time.Duration, error) {
	begun := d.Now()
	err := await(ctx, func(ctx context.Context) (bool, error) {
		var page httpapi.Detail
		err := d.admin.call(ctx, http.MethodGet, adminPath+"/"+d.archiveID+"?limit=1", nil, &page)
		return page.Conversation.LastSequence >= last, err
	})
	return d.Now().Sub(begun), err
}

// readBack reads the archive page by page.
func (d *demo) readBack(ctx context.Context) (transcript, error) {
	t := transcript{threads: map[int]int64{}}
	for after := int64(0); ; {
		var page httpapi.Detail
		path := fmt.Sprintf("%s/%s?after_sequence=%d&limit=%d", adminPath, d.archiveID, after, pageSize)
		if err := d.admin.call(ctx, http.MethodGet, path, nil, &page); err != nil {
			return t, err
		}
		t.pages++
		t.header, t.members = page.Conversation, page.Members
		for _, e := range page.Events {
			t.events = append(t.events, submitted(e))
			if e.ThreadID != nil {
				t.threads[e.Sequence] = *e.ThreadID
			}
		}
		if !page.HasMore {
			return t, nil
		}
		if page.NextAfterSequence <= after {
			return t, errors.New("the admin API's pages do not go on")
		}
		after = page.NextAfterSequence
	}
}

// submitted takes off what the server adds to an event.
func submitted(e httpapi.Event) event {
	text := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	return event{
		EventID: e.EventID, Sequence: e.Sequence, ClientTurnID: e.ClientTurnID, Kind: e.Kind,
		Content: text(e.Content), Status: text(e.Status), RunID: text(e.RunID), MemberSessionID: text(e.MemberSessionID),
	}
}

// compare names the first difference by its place, never by its text.
func compare(want, got []event) error {
	for i := range want {
		if i >= len(got) {
			return fmt.Errorf("only %d of %d events were read back", len(got), len(want))
		}
		if want[i] != got[i] {
			return fmt.Errorf("event %d was not read back as it was written", want[i].Sequence)
		}
	}
	if len(got) > len(want) {
		return fmt.Errorf("%d events were read back and only %d were written", len(got), len(want))
	}
	return nil
}

// summary is a fingerprint of all texts of a conversation.
type summary struct {
	messages, bytes int
	sum             string
}

func (s summary) String() string {
	return fmt.Sprintf("%d messages, %d bytes, SHA-256 %s", s.messages, s.bytes, s.sum)
}

// digest hashes the texts in order, each followed by a NUL, which no text may hold.
func digest(all []event) summary {
	var s summary
	h := sha256.New()
	for _, e := range all {
		if e.Kind != kindUser && e.Kind != kindAssistant {
			continue
		}
		s.messages++
		s.bytes += len(e.Content)
		h.Write([]byte(e.Content))
		h.Write([]byte{0})
	}
	s.sum = hex.EncodeToString(h.Sum(nil))
	return s
}
