package archive_test

import (
	"slices"
	"strings"

	"verbatim.internal/pkg/domain/archive"
)

// read takes what was sent apart, and reports false when it breaks the schema.
func read(f archive.Fields) (mEvent, bool) {
	e := mEvent{seq: int(f.Sequence), id: f.EventID, turn: f.ClientTurnID, kind: f.Kind}
	if !identifierRule.MatchString(e.id) || !identifierRule.MatchString(e.turn) || f.Sequence < 1 || f.Sequence > 9007199254740991 {
		return e, false
	}
	var given []string
	if f.Content != nil {
		given, e.content = append(given, "content"), *f.Content
	}
	if f.Status != nil {
		given, e.status = append(given, "status"), *f.Status
	}
	if f.RunID != nil {
		given, e.run = append(given, "run_id"), strings.ToLower(*f.RunID)
	}
	if f.MemberSessionID != nil {
		given, e.member = append(given, "member_session_id"), strings.ToLower(*f.MemberSessionID)
	}
	switch fields := strings.Join(given, " "); e.kind {
	case "turn_start":
		return e, fields == ""
	case "user_message", "assistant_message":
		return e, fields == "content" && textRule(e.content, 64_000)
	case "turn_end":
		return e, fields == "status" && slices.Contains([]string{"completed", "failed", "cancelled"}, e.status)
	case "run_link":
		return e, fields == "run_id member_session_id" && uuidRule.MatchString(e.run) && uuidRule.MatchString(e.member)
	}
	return e, false
}

// running returns the turn that runs at the end of events, or "".
func running(events []mEvent) string {
	turn := ""
	for _, e := range events {
		switch e.kind {
		case "turn_start":
			turn = e.turn
		case "turn_end":
			turn = ""
		}
	}
	return turn
}

func started(events []mEvent, turn string) bool {
	return slices.ContainsFunc(events, func(e mEvent) bool { return e.kind == "turn_start" && e.turn == turn })
}

func (a *mArchive) text(events []mEvent) int64 {
	n := a.earlierText
	for _, e := range events {
		n += int64(len(e.content))
	}
	return n
}

func (m *model) append(a *mArchive, bearer string, fields []archive.Fields) string {
	if len(fields) < 1 || len(fields) > 50 {
		return "invalid_request"
	}
	batch, text, high := []mEvent{}, 0, false
	for _, f := range fields {
		e, ok := read(f)
		if !ok {
			return "invalid_request"
		}
		batch, text, high = append(batch, e), text+len(e.content), high || e.seq > 20_000
	}
	if high || text > 256*1024 {
		return "conversation_audit_limit"
	}
	if bearer != a.creator {
		return "conversation_audit_not_found"
	}
	for _, x := range a.members {
		if !x.confirmed {
			return "conversation_audit_not_ready"
		}
	}
	for _, x := range a.members {
		if !m.holds(x) {
			return "conversation_audit_authorization_invalid"
		}
	}
	for i, e := range batch {
		if e.seq != batch[0].seq+i {
			return "conversation_audit_conflict"
		}
		for _, other := range batch[:i] {
			if other.id == e.id {
				return "conversation_audit_conflict"
			}
		}
	}
	events := slices.Clone(a.events)
	for _, e := range batch {
		if e.seq <= len(a.events) {
			old := a.events[e.seq-1]
			if e.thread, e.at = old.thread, old.at; e != old {
				return "conversation_audit_conflict"
			}
			continue
		}
		if e.seq != len(events)+1 || slices.ContainsFunc(events, func(old mEvent) bool { return old.id == e.id }) {
			return "conversation_audit_conflict"
		}
		fits := running(events) == e.turn
		switch e.kind {
		case "turn_start":
			fits = running(events) == "" && !started(events, e.turn)
		case "run_link":
			fits = started(events, e.turn) && m.linkable(a, events, e)
			e.thread = m.runs[e.run].thread
		}
		if !fits {
			return "conversation_audit_conflict"
		}
		e.at = m.now
		if events = append(events, e); a.text(events) > 16*1024*1024 {
			return "conversation_audit_limit"
		}
	}
	if len(events) > len(a.events) {
		a.events, a.updated = events, m.now
		a.commits++
	}
	return ""
}

// linkable reports whether the run is exact and linked nowhere, not even earlier in the batch.
func (m *model) linkable(a *mArchive, events []mEvent, e mEvent) bool {
	for _, other := range m.archives {
		for _, old := range other.events {
			if old.run == e.run {
				return false
			}
		}
	}
	for _, old := range events {
		if old.run == e.run {
			return false
		}
	}
	for _, x := range a.members {
		if x.id == e.member {
			run, exists := m.runs[e.run]
			want := mRun{session: x.id, client: x.client, route: x.route, conversation: a.conversation, turn: e.turn, thread: run.thread}
			return exists && run == want && run.thread > 0
		}
	}
	return false
}
