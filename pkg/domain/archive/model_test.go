package archive_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf16"

	"verbatim.internal/pkg/domain/archive"
)

// The model is the archive protocol said once more, as plainly as possible and
// without the code under test: whole histories in slices, every question
// answered by looking through them. Only the input type archive.Fields and the
// contract's numbers and words are shared.

type (
	world struct { // values only, so that a shallow clone is a copy; slices are never written to
		clients  map[string]mClient
		routes   map[string]mRoute
		sessions map[string]mSession
	}
	mClient struct {
		name   string
		on     bool
		routes []string
	}
	mRoute struct {
		on, agents bool
		policy     map[string][]string // nil admits all
	}
	mSession struct {
		client, behalf              string
		id, tenant, audience, where string // of the principal
		roles, routes               []string
		expires                     int
		revoked                     bool
	}
	mRun struct {
		session, client, route, conversation, turn string
		thread                                     int64
	}
	mMember struct {
		id, client, route, label, name string
		confirmed                      bool
		frozen                         string
		at                             int
	}
	mEvent struct {
		seq                                          int
		id, turn, kind, content, status, run, member string
		thread                                       int64
		at                                           int
	}
	mArchive struct {
		key, input, creator, conversation string
		v2                                bool
		members                           []mMember
		events                            []mEvent
		earlierText                       int64 // as if it had been stored before
		commits                           int64
		created, updated                  int
	}
	mCreation struct {
		v2                    bool
		archive, conversation string
		route                 string // v1
		members               []archive.MemberFields
		labels                map[string]string // v1
	}
	model struct {
		world
		now      int // seconds
		runs     map[string]mRun
		archives []*mArchive
	}
)

func (w world) clone() world {
	return world{maps.Clone(w.clients), maps.Clone(w.routes), maps.Clone(w.sessions)}
}

func (s mSession) identity(id string) string {
	return fmt.Sprintf("%q", []string{id, s.client, s.behalf, s.id, s.tenant, s.audience, s.where, fmt.Sprintf("%q", s.roles)})
}

// holds reports whether the member passes the member check.
func (m *model) holds(member mMember) bool {
	s, ok1 := m.sessions[member.id]
	c, ok2 := m.clients[member.client]
	r, ok3 := m.routes[member.route]
	if !ok1 || !ok2 || !ok3 {
		return false
	}
	if s.revoked || s.expires <= m.now || s.client != member.client {
		return false
	}
	if !c.on || !r.on || !r.agents {
		return false
	}
	for _, allowed := range [][]string{c.routes, s.routes} {
		if !slices.Contains(allowed, "*") && !slices.Contains(allowed, member.route) {
			return false
		}
	}
	if member.confirmed && member.frozen != s.identity(member.id) {
		return false
	}
	where := s.where
	if where == "" {
		where = "agent:" + member.client
	}
	values := map[string][]string{
		"clients": {member.client}, "channels": {where}, "tenants": {s.tenant}, "roles": s.roles, "principals": {s.id}, "audiences": {s.audience},
	}
	for list, wanted := range r.policy {
		found := len(wanted) == 0 || slices.Contains(wanted, "*")
		for _, v := range values[list] {
			found = found || v != "" && slices.Contains(wanted, v)
		}
		if !found {
			return false
		}
	}
	return true
}

var (
	uuidRule       = regexp.MustCompile(`(?i)^[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	keyRule        = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{1,63}$`)
	identifierRule = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$`)
)

func textRule(s string, most int) bool {
	return strings.TrimSpace(s) != "" && !strings.Contains(s, "\x00") && len(utf16.Encode([]rune(s))) <= most
}

// create returns the code of the refusal, or "" and the archive, new or found.
func (m *model) create(in mCreation, bearer string) (string, *mArchive) {
	if !uuidRule.MatchString(in.archive) || !identifierRule.MatchString(in.conversation) {
		return "invalid_request", nil
	}
	if !in.v2 && (!keyRule.MatchString(in.route) || in.route == "auto") {
		return "invalid_request", nil
	}
	client := m.sessions[bearer].client
	var members []mMember
	for _, f := range in.members {
		member := mMember{id: strings.ToLower(f.SessionID), client: f.ClientAppID, route: f.Route}
		if !in.v2 {
			member.client, member.route = client, in.route
		}
		if !uuidRule.MatchString(f.SessionID) || in.v2 && !keyRule.MatchString(member.client) || !keyRule.MatchString(member.route) || member.route == "auto" {
			return "invalid_request", nil
		}
		if f.Label != nil {
			if member.label = *f.Label; !textRule(member.label, 128) {
				return "invalid_request", nil
			}
		}
		for _, other := range members {
			if other.id == member.id {
				return "invalid_request", nil
			}
		}
		members = append(members, member)
	}
	if len(members) < 1 || len(members) > 64 {
		return "invalid_request", nil
	}
	labelled := map[string]bool{}
	for id, label := range in.labels {
		id = strings.ToLower(id)
		i := slices.IndexFunc(members, func(x mMember) bool { return x.id == id })
		if i < 0 || labelled[id] || !textRule(label, 128) {
			return "invalid_request", nil
		}
		labelled[id], members[i].label = true, label
	}
	slices.SortFunc(members, func(a, b mMember) int { return strings.Compare(a.id, b.id) })
	w := slices.IndexFunc(members, func(x mMember) bool { return x.id == bearer })
	if w < 0 {
		return "conversation_audit_not_found", nil
	}
	if members[w].client != client {
		return "conversation_audit_authorization_invalid", nil
	}

	input := fmt.Sprintf("%v %s %q", in.v2, strings.ToLower(in.archive), in.conversation)
	for _, x := range members {
		input += fmt.Sprintf(" %s %q %q", x.id, x.route, x.label)
		if in.v2 {
			input += x.client
		}
	}
	key := bearer + "|" + members[w].route + "|" + strings.ToLower(in.archive)
	found := slices.IndexFunc(m.archives, func(a *mArchive) bool { return a.key == key })
	for i, x := range members {
		if found >= 0 {
			for _, old := range m.archives[found].members {
				if old.id == x.id {
					x.confirmed, x.frozen = old.confirmed, old.frozen
				}
			}
		}
		if (in.v2 || i == w) && !m.holds(x) {
			return "conversation_audit_authorization_invalid", nil
		}
	}
	if found >= 0 {
		if m.archives[found].input != input {
			return "conversation_audit_conflict", nil
		}
		return "", m.archives[found]
	}
	a := &mArchive{
		key: key, input: input, creator: bearer, conversation: in.conversation, v2: in.v2, members: members,
		commits: 1, created: m.now, updated: m.now,
	}
	for i := range members {
		if in.v2 {
			members[i].name = m.clients[members[i].client].name
		}
	}
	members[w].confirmed, members[w].frozen, members[w].at = true, m.sessions[bearer].identity(bearer), m.now
	m.archives = append(m.archives, a)
	return "", a
}

func (m *model) confirm(a *mArchive, bearer string) string {
	i := slices.IndexFunc(a.members, func(x mMember) bool { return x.id == bearer })
	if i < 0 {
		return "conversation_audit_not_found"
	}
	if s, exists := m.sessions[bearer]; !a.v2 && exists && s.client != a.members[i].client {
		return "conversation_audit_not_found"
	}
	last := true // would all be confirmed afterwards?
	for j, x := range a.members {
		last = last && (j == i || x.confirmed)
	}
	for j, x := range a.members {
		if (a.v2 || last || j == i) && !m.holds(x) {
			return "conversation_audit_authorization_invalid"
		}
	}
	if !a.members[i].confirmed {
		a.members[i].confirmed, a.members[i].frozen, a.members[i].at = true, m.sessions[bearer].identity(bearer), m.now
		a.commits++
		a.updated = m.now
	}
	return ""
}
