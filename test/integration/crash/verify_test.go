package crash_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"verbatim.internal/test/integration/internal/kit"
)

// holds waits until an archive serves at least what it was acknowledged to hold when
// holds was called, and compares it. More may be on its way.
func (s *system) holds(r *record) {
	s.t.Helper()
	want := r.acknowledged()
	kit.Eventually(s.t, patience, func() error {
		detail, err := s.read(s.t.Context(), r.id)
		if err != nil {
			return err
		}
		if len(detail.Events) < len(want) {
			return fmt.Errorf("%d events are served, %d are acknowledged", len(detail.Events), len(want))
		}
		return sameEvents(kit.Submitted(detail.Events[:len(want)]), want)
	})
}

// verify compares everything that is served with everything that was acknowledged.
func (s *system) verify(records []*record, told []*execution) {
	s.t.Helper()
	s.settled()
	s.verifyExecutions(told)
	events, runs := 0, 0
	changes := kit.Count(s.t, s.IngestDB.AdminDSN, `select count(*) from bz_registry_changes`)
	served := s.list()
	for _, r := range records {
		want := r.acknowledged()
		events += len(want)
		detail, err := s.read(s.t.Context(), r.id)
		require.NoError(s.t, err)
		require.NoError(s.t, sameEvents(kit.Submitted(detail.Events), want), "archive %s", r.id)
		for i, e := range detail.Events {
			require.Equal(s.t, string(kit.JSON(want[i])), string(kit.JSON(kit.Submitted([]kit.Event{e})[0])))
		}
		assert.Equal(s.t, "ready", detail.Conversation.State)
		assert.Equal(s.t, len(want), detail.Conversation.LastSequence)
		assert.Equal(s.t, 1, served[r.id], "archive %s is not once in the list", r.id)
		delete(served, r.id)
		if r.run.RunID != "" {
			runs++
			s.verifyRun(r)
		}
	}
	assert.Empty(s.t, served, "archives that nobody created")
	for query, want := range map[string]int{
		`select count(*) from archive_events`:            events,
		`select count(*) from archives`:                  len(records),
		`select count(*) from archive_members`:           2 * len(records),
		`select count(*) from runs`:                      runs,
		`select count(*) from streams`:                   len(records) + runs + changes + len(told),
		`select count(*) from parked_messages`:           0,
		`select count(*) from streams where version = 0`: 0,
	} {
		assert.Equal(s.t, want, kit.Count(s.t, s.AuditviewDB.AdminDSN, query), query)
	}
	assert.Equal(s.t, events, kit.Count(s.t, s.IngestDB.AdminDSN, `select count(*) from bz_agent_conversation_events`))
	assert.Zero(s.t, kit.Count(s.t, s.IngestDB.AdminDSN, `select count(*) from outbox`))
	s.t.Logf("%d archives, %d events and %d runs are served exactly once", len(records), events, runs)
}

// verifyRun compares a run's trace with the run and its link.
func (s *system) verifyRun(r *record) {
	s.t.Helper()
	path := fmt.Sprintf("/admin/api/threads/%d/agent-runs/%s/trace", r.run.ThreadID, r.run.RunID)
	answer := s.Auditview.Must(kit.Request{Method: http.MethodGet, Path: path, Bearer: kit.Viewer})
	var trace struct {
		Run struct {
			RunID   string `json:"run_id"`
			Session string `json:"session_id"`
			Archive string `json:"conversation_audit_id"`
		} `json:"run"`
	}
	answer.Decode(s.t, http.StatusOK, &trace)
	assert.Equal(s.t, r.run.RunID, trace.Run.RunID)
	assert.Equal(s.t, r.run.SessionID, trace.Run.Session)
	linked := ""
	for _, e := range r.acknowledged() {
		if e.Kind == "run_link" {
			linked = r.id
		}
	}
	assert.Equal(s.t, linked, trace.Run.Archive)
}

// listPage is a page of the list of archives.
type listPage struct {
	Items      []kit.Header `json:"items"`
	NextOffset *int         `json:"next_offset"`
}

// list reads the list of archives, page by page, and returns how often each is in it.
func (s *system) list() map[string]int {
	s.t.Helper()
	found := map[string]int{}
	for offset := 0; ; {
		path := fmt.Sprintf("/admin/api/conversation-audits?limit=100&offset=%d", offset)
		answer := s.Auditview.Must(kit.Request{Method: http.MethodGet, Path: path, Bearer: kit.Viewer})
		require.Equal(s.t, http.StatusOK, answer.Status)
		var page listPage
		require.NoError(s.t, json.Unmarshal(answer.Body, &page))
		for _, item := range page.Items {
			found[item.ConversationID]++
		}
		if page.NextOffset == nil {
			return found
		}
		offset = *page.NextOffset
	}
}

// read is Read without a look at the contract, which takes more time than the services do.
func (s *system) read(ctx context.Context, id string) (whole kit.Detail, err error) {
	for after := 0; ; {
		path := fmt.Sprintf("/admin/api/conversation-audits/%s?limit=200&after_sequence=%d", id, after)
		answer, err := exchange(ctx, s.Auditview, kit.Request{Method: http.MethodGet, Path: path, Bearer: kit.Viewer})
		if err != nil {
			return whole, err
		}
		if answer.Status != http.StatusOK {
			return whole, fmt.Errorf("status %d: %s", answer.Status, answer.Code())
		}
		var page kit.Detail
		if err := json.Unmarshal(answer.Body, &page); err != nil {
			return whole, err
		}
		page.Events = append(whole.Events, page.Events...)
		whole, after = page, page.NextAfterSequence
		if !page.HasMore {
			return whole, nil
		}
	}
}
