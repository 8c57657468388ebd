package hubtest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

const revision = "5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef"

// run is one authorized execution.
type run struct {
	owner      string
	opened     string // the request
	context    map[string]any
	completion string
	events     map[string]string
	positions  int
}

func (h *Hub) runRoute(s *session, parts []string, known string, body []byte) reply {
	switch {
	case len(parts) == 1:
		spaces := []map[string]string{}
		for _, route := range s.routes {
			spaces = append(spaces, map[string]string{"route_key": route, "name": "Route " + route, "revision": revision})
		}
		return revised(known, map[string]any{"schema": "bailing.agent-workspaces.v1", "revision": revision, "workspaces": spaces})
	case len(parts) != 3:
		return refuse(http.StatusNotFound, "not_found")
	case parts[0] == "runs":
		r := h.runs[parts[1]]
		if r == nil || r.owner != s.id {
			return refuse(http.StatusNotFound, "run_not_found")
		}
		if parts[2] == "complete" {
			return r.complete(parts[1], body)
		}
		return r.trace(parts[1], body)
	case !slices.Contains(s.routes, parts[1]):
		return refuse(http.StatusForbidden, "route_not_allowed")
	case parts[2] == "bootstrap":
		return revised(known, map[string]any{
			"schema": "bailing.agent-runtime-profile.v1", "revision": revision, "route_key": parts[1], "name": "Route " + parts[1],
			"instructions": "Be brief.", "knowledge": []any{}, "memory": []any{}, "tools": []any{},
		})
	}
	return h.open(s, parts[1], body)
}

func revised(known string, body map[string]any) reply {
	if known == `"`+revision+`"` {
		return reply{status: http.StatusNotModified, etag: known}
	}
	return reply{status: http.StatusOK, body: body, etag: `"` + revision + `"`}
}

func (h *Hub) open(s *session, route string, body []byte) reply {
	var t struct {
		Conversation string          `json:"client_conversation_id"`
		Turn         string          `json:"client_turn_id"`
		Message      string          `json:"user_message_id"`
		Input        string          `json:"user_input"`
		PageContext  json.RawMessage `json:"page_context"`
		Renderers    []string        `json:"renderers"`
	}
	if !decode(body, &t) {
		return refuse(http.StatusBadRequest, "invalid_request")
	}
	thread := strings.Join([]string{s.id, route, t.Conversation}, "/")
	for _, r := range h.runs {
		if r.context["thread"] == thread && r.context["client_turn_id"] == t.Turn {
			if r.opened != string(body) {
				return refuse(http.StatusConflict, "turn_conflict")
			}
			return ok(r.context)
		}
	}
	if h.threads[thread] == 0 {
		h.threads[thread] = int64(len(h.threads)) + 101
	}
	id := h.uuid()
	h.runs[id] = &run{owner: s.id, opened: string(body), events: map[string]string{}, context: map[string]any{
		"schema": "bailing.agent-turn-context.v1", "run_id": id, "thread_id": h.threads[thread], "route_key": route, "thread": thread,
		"client_conversation_id": t.Conversation, "client_turn_id": t.Turn, "user_message_id": t.Message, "user_input": t.Input,
		"instructions": "Be brief.", "knowledge": []any{}, "memory": []any{}, "tools": []any{}, "created_at": "2026-01-01T00:00:00.000Z",
	}}
	return ok(h.runs[id].context)
}

func (r *run) complete(id string, body []byte) reply {
	var c struct {
		Message string `json:"assistant_message_id"`
		Status  string `json:"status"`
	}
	if json.Unmarshal(body, &c) != nil {
		return refuse(http.StatusBadRequest, "invalid_request")
	}
	if r.completion != "" && r.completion != string(body) {
		return refuse(http.StatusConflict, "run_completion_conflict")
	}
	replay := r.completion != ""
	r.completion = string(body)
	return ok(map[string]any{
		"schema": "bailing.agent-run-completion.v1", "run_id": id, "assistant_message_id": c.Message, "status": c.Status,
		"completed_at": "2026-01-01T00:00:01.000Z", "idempotent_replay": replay,
	})
}

func (r *run) trace(id string, body []byte) reply {
	var t struct {
		Events []map[string]any `json:"events"`
	}
	if json.Unmarshal(body, &t) != nil {
		return refuse(http.StatusBadRequest, "invalid_request")
	}
	accepted := 0
	for _, e := range t.Events {
		name, _ := e["event_id"].(string)
		text, _ := json.Marshal(e)
		if stored, known := r.events[name]; !known {
			r.events[name] = string(text)
			accepted++
		} else if stored != string(text) {
			return refuse(http.StatusConflict, "trace_event_conflict")
		}
	}
	r.positions += accepted
	return ok(map[string]any{
		"schema": "verbatim.run-trace-ack.v1", "run_id": id, "accepted": accepted, "skipped": len(t.Events) - accepted,
		"dropped_fields": 0, "last_position": r.positions,
	})
}
