package postgres

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"

	"verbatim.internal/pkg/domain/archive"
	"verbatim.internal/pkg/domain/identity"
)

// scanArchive reads at most one header; no row leaves a nil.
func scanArchive(rows pgx.Rows, out **archive.Archive) error {
	for rows.Next() {
		a := &archive.Archive{}
		var hash []byte
		if err := rows.Scan(&a.ConversationID, &a.ClientArchiveID, &a.ClientConversationID, &a.CreatorSessionID,
			&a.Binding.ClientAppID, &a.Binding.RouteKey, &a.MembershipVersion, &hash, &a.State, &a.ConfirmedCount,
			&a.LastSequence, &a.MessageCount, &a.TurnCount, &a.LastTurnStatus, &a.CurrentTurnID, &a.TextBytes,
			&a.StreamVersion, &a.CreatedAt, &a.UpdatedAt); err != nil {
			return fmt.Errorf("read an archive: %w", err)
		}
		if copy(a.RequestHash[:], hash) != len(a.RequestHash) {
			return errors.New("read an archive: its request hash is too short")
		}
		*out = a
	}
	return rows.Err()
}

// facts is one row of factColumns, null where a fact does not exist.
type facts struct {
	sessionClient, principal, onBehalfOf *string
	sessionRoutes                        []string
	refreshExpiresAt, revokedAt          *time.Time
	clientName                           *string
	clientRoutes                         []string
	clientEnabled                        *bool
	routeEnabled, agentAccess            *bool
	audience                             *string
}

func (f *facts) dest() []any {
	return []any{
		&f.sessionClient, &f.principal, &f.onBehalfOf, &f.sessionRoutes, &f.refreshExpiresAt, &f.revokedAt,
		&f.clientName, &f.clientRoutes, &f.clientEnabled, &f.routeEnabled, &f.agentAccess, &f.audience,
	}
}

// identity gives the row the domain's form, for a member held to binding b.
func (f *facts) identity(id identity.UUID, b identity.Binding) (identity.Facts, error) {
	var out identity.Facts
	if f.principal != nil {
		p, err := identity.ParsePrincipal([]byte(*f.principal))
		if err != nil {
			return out, fmt.Errorf("read session %s: %w", id, err)
		}
		out.Session = &identity.Session{
			ID: id, ClientAppID: *f.sessionClient, Principal: p, OnBehalfOf: *f.onBehalfOf,
			AllowedRoutes: f.sessionRoutes, RefreshExpiresAt: *f.refreshExpiresAt, RevokedAt: f.revokedAt,
		}
	}
	if f.clientEnabled != nil {
		out.Client = &identity.Client{AppID: b.ClientAppID, Name: *f.clientName, AllowedRoutes: f.clientRoutes, Enabled: *f.clientEnabled}
	}
	if f.routeEnabled != nil {
		out.Route = &identity.Route{RouteKey: b.RouteKey, Enabled: *f.routeEnabled, AgentAccess: *f.agentAccess}
		if f.audience != nil {
			if err := json.Unmarshal([]byte(*f.audience), &out.Route.Audience, json.RejectUnknownMembers(true)); err != nil {
				return out, fmt.Errorf("read the audience of route %s: malformed", b.RouteKey)
			}
		}
	}
	return out, nil
}

// scanFacts reads the facts of the given members into group.
func scanFacts(rows pgx.Rows, members []archive.Member, group archive.Group) error {
	bindings := make(map[identity.UUID]identity.Binding, len(members))
	for _, m := range members {
		bindings[m.SessionID] = m.Binding
	}
	for rows.Next() {
		var id identity.UUID
		var f facts
		if err := rows.Scan(append([]any{&id}, f.dest()...)...); err != nil {
			return fmt.Errorf("read a member's facts: %w", err)
		}
		var err error
		if group[id], err = f.identity(id, bindings[id]); err != nil {
			return err
		}
	}
	return rows.Err()
}

// scanMembers reads the members of a into it and the facts about them into group.
func scanMembers(rows pgx.Rows, a *archive.Archive, group archive.Group) error {
	for rows.Next() {
		var m archive.Member
		var f facts
		var client, route, principal, onBehalfOf *string
		var confirmedAt *time.Time
		var hash []byte
		dest := []any{&m.SessionID, &m.Label, &client, &route, &m.ClientName, &confirmedAt, &principal, &onBehalfOf, &hash}
		if err := rows.Scan(append(dest, f.dest()...)...); err != nil {
			return fmt.Errorf("read a member: %w", err)
		}
		if a == nil {
			continue
		}
		m.Binding = a.Binding
		if client != nil && route != nil {
			m.Binding = identity.Binding{ClientAppID: *client, RouteKey: *route}
		}
		if confirmedAt != nil {
			p, err := identity.ParsePrincipal([]byte(*principal))
			if err != nil {
				return fmt.Errorf("read member %s: %w", m.SessionID, err)
			}
			m.Confirmation = &archive.Confirmation{Principal: p, OnBehalfOf: *onBehalfOf, At: *confirmedAt}
			copy(m.Confirmation.Snapshot[:], hash)
		}
		a.Members = append(a.Members, m)
		var err error
		if group[m.SessionID], err = f.identity(m.SessionID, m.Binding); err != nil {
			return err
		}
	}
	return rows.Err()
}

func scanEvents(rows pgx.Rows, h *archive.History) error {
	for rows.Next() {
		var e archive.Event
		var run, member *identity.UUID
		if err := rows.Scan(&e.Sequence, &e.EventID, &e.ClientTurnID, &e.Kind, &e.Content, &e.Status, &run, &member); err != nil {
			return fmt.Errorf("read an event: %w", err)
		}
		if run != nil && member != nil {
			e.RunID, e.MemberSessionID = *run, *member
		}
		if h.Stored == nil {
			h.Stored = make(map[int]archive.Event)
		}
		h.Stored[e.Sequence] = e
	}
	return rows.Err()
}

func scanEventIDs(rows pgx.Rows, used map[string]int) error {
	for rows.Next() {
		var id string
		var sequence int
		if err := rows.Scan(&id, &sequence); err != nil {
			return fmt.Errorf("read an event id: %w", err)
		}
		used[id] = sequence
	}
	return rows.Err()
}

func scanTurns(rows pgx.Rows, h *archive.History) error {
	for rows.Next() {
		var turn string
		if err := rows.Scan(&turn); err != nil {
			return fmt.Errorf("read a turn: %w", err)
		}
		if h.StartedTurns == nil {
			h.StartedTurns = make(map[string]bool)
		}
		h.StartedTurns[turn] = true
	}
	return rows.Err()
}

func scanRuns(rows pgx.Rows, h *archive.History) error {
	h.Runs, h.LinkedRuns = make(map[identity.UUID]identity.Run), make(map[identity.UUID]bool)
	for rows.Next() {
		var r identity.Run
		var linked bool
		if err := rows.Scan(&r.RunID, &r.SessionID, &r.Binding.ClientAppID, &r.Binding.RouteKey, &r.ThreadID,
			&r.ClientConversationID, &r.ClientTurnID, &r.CreatedAt, &linked); err != nil {
			return fmt.Errorf("read a run: %w", err)
		}
		h.Runs[r.RunID], h.LinkedRuns[r.RunID] = r, linked
	}
	return rows.Err()
}
