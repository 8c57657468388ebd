package archive_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"verbatim.internal/pkg/domain/archive"
	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/pkg/domain/refusal"
)

const (
	sessionA = identity.UUID("123e4567-e89b-42d3-a456-42661417400a")
	sessionB = identity.UUID("123e4567-e89b-42d3-a456-42661417400b")
	sessionC = identity.UUID("123e4567-e89b-42d3-a456-42661417400c")

	archiveID    = "323e4567-e89b-42d3-a456-426614174001"
	conversation = "conversation-stable-id"
	serverID     = identity.UUID("423e4567-e89b-42d3-a456-426614174001")
)

var (
	instant  = time.Date(2030, time.January, 2, 3, 4, 5, 6000, time.UTC)
	later    = instant.Add(time.Minute)
	crm, erp = binding("crm-demo", "customers"), binding("erp-demo", "orders")
)

func binding(client, route string) identity.Binding {
	return identity.Binding{ClientAppID: client, RouteKey: route}
}

func ptr[T any](v T) *T { return &v }

func sessionUUID(n int) string { return fmt.Sprintf("123e4567-e89b-42d3-a456-4266141%05d", n) }

func runUUID(n int) identity.UUID {
	return identity.UUID(fmt.Sprintf("223e4567-e89b-42d3-a456-4266141%05d", n))
}

// facts are those of a session that passes the member check for b.
func facts(id identity.UUID, b identity.Binding) identity.Facts {
	return identity.Facts{
		Session: &identity.Session{
			ID: id, ClientAppID: b.ClientAppID, Principal: identity.Principal{ID: "operator-" + string(id[len(id)-1:])},
			OnBehalfOf: "someone", AllowedRoutes: []string{b.RouteKey}, RefreshExpiresAt: instant.Add(time.Hour),
		},
		Client: &identity.Client{AppID: b.ClientAppID, Name: "Name of " + b.ClientAppID, AllowedRoutes: []string{"*"}, Enabled: true},
		Route:  &identity.Route{RouteKey: b.RouteKey, Enabled: true, AgentAccess: true},
	}
}

// group is all three sessions: A and C of crm, B of the binding given.
func group(b identity.Binding) archive.Group {
	return archive.Group{sessionA: facts(sessionA, crm), sessionB: facts(sessionB, b), sessionC: facts(sessionC, crm)}
}

// fieldsV1 are a valid v1 creation with members A, B and C.
func fieldsV1() archive.FieldsV1 {
	return archive.FieldsV1{
		ClientArchiveID: archiveID, ClientConversationID: conversation, Route: "customers",
		MemberSessionIDs: []string{string(sessionA), string(sessionB), string(sessionC)},
		MemberLabels:     map[string]string{string(sessionB): "Store B"},
	}
}

// fieldsV2 are a valid v2 creation: A and C are of crm, B is of erp.
func fieldsV2() archive.FieldsV2 {
	member := func(id identity.UUID, b identity.Binding, label *string) archive.MemberFields {
		return archive.MemberFields{SessionID: string(id), ClientAppID: b.ClientAppID, Route: b.RouteKey, Label: label}
	}
	return archive.FieldsV2{
		ClientArchiveID: archiveID, ClientConversationID: conversation,
		Members: []archive.MemberFields{
			member(sessionC, crm, nil), member(sessionB, erp, ptr("ERP account")), member(sessionA, crm, nil),
		},
	}
}

var bearerA = identity.Bearer{SessionID: sessionA, ClientAppID: crm.ClientAppID}

// newV1 and newV2 return what A's creation makes, before any check.
func newV1(t *testing.T, f archive.FieldsV1) *archive.Archive {
	t.Helper()
	c, err := archive.NewCreationV1(f)
	return newArchive(t, c, err)
}

func newV2(t *testing.T, f archive.FieldsV2) *archive.Archive {
	t.Helper()
	c, err := archive.NewCreationV2(f)
	return newArchive(t, c, err)
}

func newArchive(t *testing.T, c archive.Creation, err error) *archive.Archive {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	a, err := c.New(serverID, bearerA, instant)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// enrolled is one after its creation; ready is one after all confirmations.
func enrolled(t *testing.T, a *archive.Archive, g archive.Group) *archive.Archive {
	t.Helper()
	if err := a.Enrol(g, instant); err != nil {
		t.Fatal(err)
	}
	return a
}

func ready(t *testing.T, a *archive.Archive, g archive.Group) *archive.Archive {
	t.Helper()
	enrolled(t, a, g)
	for _, m := range a.Members {
		if _, err := a.Confirm(m.SessionID, g, instant); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

func readyV1(t *testing.T) *archive.Archive {
	t.Helper()
	return ready(t, newV1(t, fieldsV1()), group(crm))
}

func readyV2(t *testing.T) *archive.Archive {
	t.Helper()
	return ready(t, newV2(t, fieldsV2()), group(erp))
}

// deepCopy shares nothing with a.
func deepCopy(a *archive.Archive) *archive.Archive {
	c := *a
	c.Members = slices.Clone(a.Members)
	for i := range c.Members {
		if old := c.Members[i].Confirmation; old != nil {
			frozen := *old
			frozen.Principal.Roles = slices.Clone(frozen.Principal.Roles)
			c.Members[i].Confirmation = &frozen
		}
	}
	return &c
}

// wantRefusal checks the code of what do returns, and that a stays as it is.
func wantRefusal(t *testing.T, want refusal.Code, a *archive.Archive, do func() error) {
	t.Helper()
	before := deepCopy(a)
	if err := do(); refusal.CodeOf(err) != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if !reflect.DeepEqual(a, before) {
		t.Errorf("the archive changed:\n%+v\n%+v", before, a)
	}
}
