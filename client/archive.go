package client

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/bbolt"
)

// Member is one session of an archive.
type Member struct {
	// Session is one of the spool's.
	Session *Session
	// Route is the member's own route; empty when the archive has a common one.
	Route string
	// Label is shown to administrators: at most 128 UTF-16 code units, or empty.
	Label string
}

// ArchiveSpec names what an archive is frozen to.
type ArchiveSpec struct {
	// ID is the archive's client_archive_id, a UUID. Left empty it is drawn once and kept.
	ID string
	// ConversationID is the host's own identifier of the conversation.
	ConversationID string
	// Route is the route that all members have in common, with one client (the v1 of the
	// protocol). Left empty, each member has its own (v2), which a hub may not support.
	Route string
	// Members are 1 to 64 distinct sessions. The first one creates and writes.
	Members []Member
}

// State is how an archive stands with the hub.
type State string

// The states of an archive.
const (
	// Pending is an archive that the hub does not know yet.
	Pending State = "pending"
	// Enrolling is an archive of which not all members are known to be confirmed.
	Enrolling State = "enrolling"
	// Ready is an archive that takes events.
	Ready State = "ready"
	// Unsupported is an archive that the hub, an older one perhaps, cannot keep. The events
	// wait in the spool; each Sync asks again.
	Unsupported State = "unsupported"
	// Refused is an archive that the hub has refused for good; see Archive.Resume.
	Refused State = "refused"
)

// Status is what the spool knows of an archive.
type Status struct {
	// ID is the client_archive_id, ConversationID the host's own identifier.
	ID, ConversationID string
	// HubID is the hub's conversation_id, empty until it is known.
	HubID string
	State State
	// LastSequence is the last event in the spool, Acknowledged the last one that the hub
	// says it holds.
	LastSequence, Acknowledged int
	// RunningTurn is the turn that has started and not ended in the spool, or empty.
	RunningTurn string
	// Refusal is why State is Refused, else nil.
	Refusal *RefusedError
}

// Archived reports whether the hub has acknowledged every event of the spool, at least one.
func (s Status) Archived() bool { return s.LastSequence > 0 && s.Acknowledged == s.LastSequence }

// Archive is one conversation. Safe for concurrent use.
type Archive struct {
	spool *Spool
	id    string
	sync  semaphore // one Sync at a time
}

// archiveRecord is an archive in the file.
type archiveRecord struct {
	ConversationID string         `json:"conversation_id"`
	Creator        string         `json:"creator"`
	V2             bool           `json:"v2,omitempty"`
	Members        []memberRecord `json:"members"` // in the order of their ids
	// Create is the request that creates the archive, drawn up once.
	Create    json.RawMessage `json:"create"`
	SpecHash  []byte          `json:"spec_hash"`
	CreatedNo uint64          `json:"created_no"` // the order in which archives were opened

	HubID       string        `json:"hub_id,omitempty"`
	Ready       bool          `json:"ready,omitempty"`
	Unsupported bool          `json:"unsupported,omitempty"`
	Refusal     *RefusedError `json:"refusal,omitempty"`

	Last         int    `json:"last"`
	Acknowledged int    `json:"acknowledged"`
	BatchLast    int    `json:"batch_last,omitempty"` // where the batch on its way ends, 0: none is
	Turn         string `json:"turn,omitempty"`       // the running turn
	TextBytes    int64  `json:"text_bytes"`
}

// memberRecord is a member in the file.
type memberRecord struct {
	SessionID string `json:"session_id"`
	Route     string `json:"route"`
	Confirmed bool   `json:"confirmed,omitempty"`
}

func (r *archiveRecord) member(sessionID string) *memberRecord {
	for i := range r.Members {
		if r.Members[i].SessionID == sessionID {
			return &r.Members[i]
		}
	}
	return nil
}

func (r *archiveRecord) state() State {
	switch {
	case r.Refusal != nil:
		return Refused
	case r.Unsupported:
		return Unsupported
	case r.Ready:
		return Ready
	case r.HubID != "":
		return Enrolling
	}
	return Pending
}

func newArchive(s *Spool, id string) *Archive {
	return &Archive{spool: s, id: id, sync: newSemaphore()}
}

// OpenArchive returns the spool's archive of this conversation with exactly these
// members, and makes it if there is none; with a spec.ID, the archive of that id. It is on
// disk when OpenArchive returns, and the hub hears of it by Sync or Run. Errors:
// ErrInvalid; ErrConflict when the archive of that id is another one.
func (s *Spool) OpenArchive(spec ArchiveSpec) (*Archive, error) {
	if err := spec.check(s); err != nil {
		return nil, err
	}
	hash, err := spec.hash()
	if err != nil {
		return nil, err
	}
	id, _ := parseUUID(spec.ID)
	isNew := false
	err = s.update(func(tx *bbolt.Tx) error {
		isNew = false
		specs := tx.Bucket(bucketSpecs)
		if id == "" {
			id = string(specs.Get(hash))
		}
		if value := tx.Bucket(bucketArchives).Get([]byte(id)); id != "" && value != nil {
			var r archiveRecord
			if err := json.Unmarshal(value, &r); err != nil {
				return err
			}
			if !slices.Equal(r.SpecHash, hash) {
				return conflict("the archive of this id is another one")
			}
			return nil
		}
		if id == "" {
			id = newUUID()
		}
		isNew = true
		if err := s.insertArchive(tx, id, spec, hash); err != nil {
			return err
		}
		s.step("archive: before commit")
		return nil
	})
	if err != nil {
		return nil, err
	}
	if isNew {
		s.step("archive: committed")
		s.poke()
	}
	return s.archive(id), nil
}

// archive returns the one Archive of an id that the file has.
func (s *Spool) archive(id string) *Archive {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.archives[id]
	if a == nil {
		a = newArchive(s, id)
		s.archives[id] = a
	}
	return a
}

func (s *Spool) insertArchive(tx *bbolt.Tx, id string, spec ArchiveSpec, hash []byte) error {
	create, err := spec.create(id)
	if err != nil {
		return err
	}
	archives := tx.Bucket(bucketArchives)
	number, err := archives.NextSequence()
	if err != nil {
		return err
	}
	r := archiveRecord{
		ConversationID: spec.ConversationID, Creator: spec.Members[0].Session.id, V2: spec.Route == "",
		Create: create, SpecHash: hash, CreatedNo: number,
	}
	for _, m := range spec.sorted() {
		route := m.Route
		if spec.Route != "" {
			route = spec.Route
		}
		if err := checkRoute(tx, m.Session.id, route); err != nil {
			return err
		}
		r.Members = append(r.Members, memberRecord{SessionID: m.Session.id, Route: route})
	}
	for _, name := range [][]byte{bucketEvents, bucketIDs, bucketTurns} {
		if _, err := tx.Bucket(name).CreateBucket([]byte(id)); err != nil {
			return err
		}
	}
	if err := tx.Bucket(bucketSpecs).Put(hash, []byte(id)); err != nil {
		return err
	}
	return put(archives, id, r)
}

// checkRoute refuses a route that the session is known not to be allowed.
func checkRoute(tx *bbolt.Tx, sessionID, route string) error {
	var r sessionRecord
	if err := json.Unmarshal(tx.Bucket(bucketSessions).Get([]byte(sessionID)), &r); err != nil {
		return err
	}
	if len(r.AllowedRoutes) > 0 && !slices.Contains(r.AllowedRoutes, route) && !slices.Contains(r.AllowedRoutes, "*") {
		return invalid("a member's session is not allowed its route")
	}
	return nil
}

func (spec ArchiveSpec) check(s *Spool) error {
	if _, ok := parseUUID(spec.ID); spec.ID != "" && !ok {
		return invalid("the archive's id is no UUID")
	}
	if !isIdentifier(spec.ConversationID) {
		return invalid("the conversation's id is no identifier")
	}
	if spec.Route != "" && !isRoute(spec.Route) {
		return invalid("the route is no resource key, or auto")
	}
	if len(spec.Members) == 0 || len(spec.Members) > MaxMembers {
		return invalid("an archive has 1 to %d members", MaxMembers)
	}
	seen := map[string]bool{}
	for _, m := range spec.Members {
		switch {
		case m.Session == nil || m.Session.spool != s:
			return invalid("a member's session is not of this spool, and so of this hub")
		case seen[m.Session.id]:
			return invalid("a session is a member once, on one route")
		case m.Label != "" && !isText(m.Label, MaxLabelUnits):
			return invalid("a label is no visible text of at most %d UTF-16 code units", MaxLabelUnits)
		case spec.Route != "" && m.Route != "":
			return invalid("the members have a common route or routes of their own, not both")
		case spec.Route != "" && m.Session.clientAppID != spec.Members[0].Session.clientAppID:
			return invalid("members of different clients need routes of their own")
		case spec.Route == "" && !isRoute(m.Route):
			return invalid("a member's route is no resource key, or auto")
		}
		seen[m.Session.id] = true
	}
	return nil
}

// sorted returns the members in the order of their ids: the order is no part of what an
// archive is.
func (spec ArchiveSpec) sorted() []Member {
	members := slices.Clone(spec.Members)
	slices.SortFunc(members, func(a, b Member) int { return strings.Compare(a.Session.id, b.Session.id) })
	return members
}

// hash identifies a spec whatever the archive's id.
func (spec ArchiveSpec) hash() ([]byte, error) {
	body, err := spec.create("")
	sum := sha256.Sum256(fmt.Appendf(body, "\n%s", spec.Members[0].Session.id))
	return sum[:], err
}

// create draws up the request that creates the archive.
func (spec ArchiveSpec) create(id string) ([]byte, error) {
	type member struct {
		SessionID   string `json:"session_id"`
		ClientAppID string `json:"client_app_id"`
		Route       string `json:"route"`
		Label       string `json:"label,omitempty"`
	}
	body := struct {
		Schema               string            `json:"schema,omitempty"`
		ClientArchiveID      string            `json:"client_archive_id"`
		ClientConversationID string            `json:"client_conversation_id"`
		Route                string            `json:"route,omitempty"`
		MemberSessionIDs     []string          `json:"member_session_ids,omitempty"`
		MemberLabels         map[string]string `json:"member_labels,omitempty"`
		Members              []member          `json:"members,omitempty"`
	}{ClientArchiveID: id, ClientConversationID: spec.ConversationID, Route: spec.Route}
	if spec.Route == "" {
		body.Schema = "bailing.agent-conversation-audit-create.v2"
	}
	for _, m := range spec.sorted() {
		if spec.Route == "" {
			body.Members = append(body.Members, member{m.Session.id, m.Session.clientAppID, m.Route, m.Label})
			continue
		}
		body.MemberSessionIDs = append(body.MemberSessionIDs, m.Session.id)
		if m.Label != "" {
			if body.MemberLabels == nil {
				body.MemberLabels = map[string]string{}
			}
			body.MemberLabels[m.Session.id] = m.Label
		}
	}
	return encode(body)
}
