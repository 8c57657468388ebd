package archive_test

import (
	"reflect"
	"testing"

	"verbatim.internal/pkg/domain/archive"
	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/pkg/domain/refusal"
)

// revoke returns g with the session's authorization taken away.
func revoke(g archive.Group, id identity.UUID) archive.Group {
	g[id].Session.RevokedAt = ptr(instant)
	return g
}

// without returns g as if the session did not exist.
func without(g archive.Group, ids ...identity.UUID) archive.Group {
	for _, id := range ids {
		delete(g, id)
	}
	return g
}

func TestEnrolConfirmsTheCreatorAlone(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		asked *archive.Archive
		group archive.Group
		names [3]string
	}{
		"v1": {newV1(t, fieldsV1()), without(group(crm), sessionB, sessionC), [3]string{}},
		"v2": {newV2(t, fieldsV2()), group(erp), [3]string{"Name of crm-demo", "Name of erp-demo", "Name of crm-demo"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := tc.asked
			if err := a.Enrol(tc.group, later); err != nil {
				t.Fatal(err)
			}
			s := tc.group[sessionA].Session
			snapshot, err := s.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			want := &archive.Confirmation{Principal: s.Principal, OnBehalfOf: s.OnBehalfOf, Snapshot: snapshot, At: later}
			if !reflect.DeepEqual(a.Members[0].Confirmation, want) || a.Members[1].Confirmation != nil || a.Members[2].Confirmation != nil {
				t.Errorf("confirmations: %+v", a.Members)
			}
			for i, m := range a.Members {
				if m.ClientName != tc.names[i] {
					t.Errorf("member %d: client name %q", i, m.ClientName)
				}
			}
			if a.ConfirmedCount != 1 || a.State != archive.Enrolling || a.StreamVersion != 1 {
				t.Errorf("got %+v", a)
			}
		})
	}
}

func TestOneMemberIsReadyAtOnce(t *testing.T) {
	t.Parallel()
	f1, f2 := fieldsV1(), fieldsV2()
	f1.MemberSessionIDs, f1.MemberLabels = []string{string(sessionA)}, nil
	f2.Members = f2.Members[2:]
	for name, a := range map[string]*archive.Archive{"v1": newV1(t, f1), "v2": newV2(t, f2)} {
		if err := a.Enrol(group(erp), instant); err != nil || a.State != archive.Ready || a.ConfirmedCount != 1 || a.StreamVersion != 1 {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
	}
}

// v1 asks for the creator only, v2 for everybody under their own binding.
func TestEnrolChecks(t *testing.T) {
	t.Parallel()
	const invalid = refusal.AuthorizationInvalid
	for name, tc := range map[string]struct {
		change func(archive.Group) archive.Group
		v1, v2 refusal.Code
	}{
		"nothing":             {func(g archive.Group) archive.Group { return g }, "", ""},
		"creator revoked":     {func(g archive.Group) archive.Group { return revoke(g, sessionA) }, invalid, invalid},
		"creator unknown":     {func(g archive.Group) archive.Group { return without(g, sessionA) }, invalid, invalid},
		"member revoked":      {func(g archive.Group) archive.Group { return revoke(g, sessionC) }, "", invalid},
		"member unknown":      {func(g archive.Group) archive.Group { return without(g, sessionC) }, "", invalid},
		"member's route shut": {func(g archive.Group) archive.Group { g[sessionB].Route.Enabled = false; return g }, "", invalid},
		"member's client off": {func(g archive.Group) archive.Group { g[sessionB].Client.Enabled = false; return g }, "", invalid},
		"member of another":   {func(g archive.Group) archive.Group { g[sessionB].Session.ClientAppID = "crm-demo"; return g }, "", invalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for version, a := range map[string]*archive.Archive{"v1": newV1(t, fieldsV1()), "v2": newV2(t, fieldsV2())} {
				g, want := tc.change(group(erp)), tc.v1
				if version == "v2" {
					want = tc.v2
				}
				if want == "" {
					enrolled(t, a, g)
					continue
				}
				wantRefusal(t, want, a, func() error { return a.Enrol(g, instant) })
			}
		})
	}
}

// A repeated creation is checked again, then compared, and changes nothing.
func TestRecreate(t *testing.T) {
	t.Parallel()
	const invalid = refusal.AuthorizationInvalid
	changeIdentity := func(id identity.UUID) func(archive.Group) archive.Group {
		return func(g archive.Group) archive.Group { g[id].Session.OnBehalfOf = "another"; return g }
	}
	same := func(g archive.Group) archive.Group { return g }
	for name, tc := range map[string]struct {
		other  bool // ask for another input
		change func(archive.Group) archive.Group
		v1, v2 refusal.Code
	}{
		"the same":                    {false, same, "", ""},
		"another input":               {true, same, refusal.Conflict, refusal.Conflict},
		"creator revoked":             {false, func(g archive.Group) archive.Group { return revoke(g, sessionA) }, invalid, invalid},
		"creator revoked and another": {true, func(g archive.Group) archive.Group { return revoke(g, sessionA) }, invalid, invalid},
		"creator's identity changed":  {false, changeIdentity(sessionA), invalid, invalid},
		"confirmed member's changed":  {false, changeIdentity(sessionB), "", invalid},
		"waiting member's changed":    {false, changeIdentity(sessionC), "", ""},
		"waiting member revoked":      {false, func(g archive.Group) archive.Group { return revoke(g, sessionC) }, "", invalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for version, want := range map[int]refusal.Code{archive.CommonBinding: tc.v1, archive.MemberBindings: tc.v2} {
				stored, asked, g := stored(t, version, tc.other)
				now := tc.change(g)
				wantRefusal(t, want, stored, func() error { return stored.Recreate(asked, now, later) })
			}
		})
	}
}

// stored returns an archive in which A and B have confirmed, and what a repeated creation asks for.
func stored(t *testing.T, version int, other bool) (stored, asked *archive.Archive, g archive.Group) {
	t.Helper()
	f1, f2 := fieldsV1(), fieldsV2()
	if version == archive.CommonBinding {
		g, stored = group(crm), newV1(t, f1)
	} else {
		g, stored = group(erp), newV2(t, f2)
	}
	enrolled(t, stored, g)
	if _, err := stored.Confirm(sessionB, g, instant); err != nil {
		t.Fatal(err)
	}
	if other {
		f1.ClientConversationID, f2.ClientConversationID = "other", "other"
	}
	if version == archive.CommonBinding {
		return stored, newV1(t, f1), g
	}
	return stored, newV2(t, f2), g
}

// The key (creator, writer's route, client archive id) may meet an archive of the other version.
func TestRecreateNeverCrossesTheVersions(t *testing.T) {
	t.Parallel()
	v1 := enrolled(t, newV1(t, fieldsV1()), group(crm))
	v2 := enrolled(t, newV2(t, fieldsV2()), group(erp))
	wantRefusal(t, refusal.Conflict, v1, func() error { return v1.Recreate(newV2(t, fieldsV2()), group(erp), later) })
	wantRefusal(t, refusal.Conflict, v2, func() error { return v2.Recreate(newV1(t, fieldsV1()), group(crm), later) })
}
