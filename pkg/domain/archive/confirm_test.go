package archive_test

import (
	"reflect"
	"testing"
	"time"

	"verbatim.internal/pkg/domain/archive"
	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/pkg/domain/refusal"
)

func TestConfirmations(t *testing.T) {
	t.Parallel()
	g := group(erp)
	a := enrolled(t, newV2(t, fieldsV2()), g)
	confirm := func(id identity.UUID, at time.Time, changed bool) {
		t.Helper()
		before := deepCopy(a)
		got, err := a.Confirm(id, g, at)
		if err != nil || got != changed {
			t.Fatalf("got %v, %v", got, err)
		}
		if !changed && !reflect.DeepEqual(a, before) {
			t.Errorf("a repeated confirmation changed the archive: %+v", a)
		}
	}
	confirm(sessionA, later, false)
	confirm(sessionC, later, true)
	snapshot, err := g[sessionC].Session.Snapshot()
	want := &archive.Confirmation{Principal: identity.Principal{ID: "operator-c"}, OnBehalfOf: "someone", Snapshot: snapshot, At: later}
	if err != nil || !reflect.DeepEqual(a.Member(sessionC).Confirmation, want) {
		t.Errorf("got %+v, %v", a.Member(sessionC).Confirmation, err)
	}
	if a.State != archive.Enrolling || a.ConfirmedCount != 2 || a.StreamVersion != 2 || !a.UpdatedAt.Equal(later) || !a.CreatedAt.Equal(instant) {
		t.Errorf("after the second: %+v", a)
	}
	confirm(sessionC, later.Add(1), false)
	confirm(sessionB, later.Add(2), true)
	if a.State != archive.Ready || a.ConfirmedCount != 3 || a.StreamVersion != 3 || !a.UpdatedAt.Equal(later.Add(2)) {
		t.Errorf("after the last: %+v", a)
	}
	if name := a.Member(sessionB).ClientName; name != "Name of erp-demo" {
		t.Errorf("client name %q", name)
	}
	confirm(sessionB, later.Add(3), false)
}

// v1 checks the bearer alone until the last one confirms, v2 always the group.
func TestConfirmChecks(t *testing.T) {
	t.Parallel()
	const invalid, absent = refusal.AuthorizationInvalid, refusal.NotFound
	same := func(g archive.Group) archive.Group { return g }
	revokes := func(id identity.UUID) func(archive.Group) archive.Group {
		return func(g archive.Group) archive.Group { return revoke(g, id) }
	}
	for name, tc := range map[string]struct {
		confirmed []identity.UUID // beside the creator
		bearer    identity.UUID
		change    func(archive.Group) archive.Group
		v1, v2    refusal.Code
	}{
		"a member":                           {nil, sessionB, same, "", ""},
		"a stranger":                         {nil, identity.UUID(sessionUUID(1)), same, absent, absent},
		"nobody":                             {nil, "", same, absent, absent},
		"revoked":                            {nil, sessionB, revokes(sessionB), invalid, invalid},
		"session gone":                       {nil, sessionB, func(g archive.Group) archive.Group { return without(g, sessionB) }, invalid, invalid},
		"moved to another client":            {nil, sessionB, func(g archive.Group) archive.Group { g[sessionB].Session.ClientAppID = "other"; return g }, absent, invalid},
		"another is revoked":                 {nil, sessionB, revokes(sessionC), "", invalid},
		"another does not exist":             {nil, sessionB, func(g archive.Group) archive.Group { return without(g, sessionC) }, "", invalid},
		"the creator is revoked":             {nil, sessionB, revokes(sessionA), "", invalid},
		"the last, and another is revoked":   {[]identity.UUID{sessionC}, sessionB, revokes(sessionC), invalid, invalid},
		"the last, the creator is revoked":   {[]identity.UUID{sessionC}, sessionB, revokes(sessionA), invalid, invalid},
		"again, meanwhile revoked":           {[]identity.UUID{sessionB}, sessionB, revokes(sessionB), invalid, invalid},
		"again, another identity":            {[]identity.UUID{sessionB}, sessionB, changesIdentity(sessionB), invalid, invalid},
		"first time, another identity":       {nil, sessionB, changesIdentity(sessionB), "", ""},
		"the last, another's identity":       {[]identity.UUID{sessionC}, sessionB, changesIdentity(sessionC), invalid, invalid},
		"not the last, the creator's":        {nil, sessionB, changesIdentity(sessionA), "", invalid},
		"again when ready, another revoked":  {[]identity.UUID{sessionB, sessionC}, sessionB, revokes(sessionC), invalid, invalid},
		"again when not ready, other's gone": {[]identity.UUID{sessionB}, sessionB, revokes(sessionC), "", invalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for version, want := range map[int]refusal.Code{archive.CommonBinding: tc.v1, archive.MemberBindings: tc.v2} {
				g, a := group(crm), newV1(t, fieldsV1())
				if version == archive.MemberBindings {
					g, a = group(erp), newV2(t, fieldsV2())
				}
				enrolled(t, a, g)
				for _, id := range tc.confirmed {
					if _, err := a.Confirm(id, g, instant); err != nil {
						t.Fatal(err)
					}
				}
				g = tc.change(g)
				if want != "" {
					wantRefusal(t, want, a, func() error {
						changed, err := a.Confirm(tc.bearer, g, later)
						if changed {
							t.Error("refused, but changed")
						}
						return err
					})
				} else if _, err := a.Confirm(tc.bearer, g, later); err != nil {
					t.Errorf("v%d: %v", version, err)
				}
			}
		})
	}
}

func changesIdentity(id identity.UUID) func(archive.Group) archive.Group {
	return func(g archive.Group) archive.Group {
		g[id].Session.Principal.Tenant = "another"
		return g
	}
}

func TestWhoMayAppend(t *testing.T) {
	t.Parallel()
	const invalid = refusal.AuthorizationInvalid
	same := func(g archive.Group) archive.Group { return g }
	revokeAll := func(g archive.Group) archive.Group {
		return revoke(revoke(revoke(g, sessionA), sessionB), sessionC)
	}
	for name, tc := range map[string]struct {
		bearer  identity.UUID
		waiting bool // one has not confirmed
		change  func(archive.Group) archive.Group
		want    refusal.Code
	}{
		"the creator":               {sessionA, false, same, ""},
		"another member":            {sessionB, false, same, refusal.NotFound},
		"a stranger":                {identity.UUID(sessionUUID(1)), false, same, refusal.NotFound},
		"another member, not ready": {sessionB, true, revokeAll, refusal.NotFound},
		"not ready":                 {sessionA, true, same, refusal.NotReady},
		"not ready, and revoked":    {sessionA, true, revokeAll, refusal.NotReady},
		"the creator is revoked":    {sessionA, false, func(g archive.Group) archive.Group { return revoke(g, sessionA) }, invalid},
		"the second is revoked":     {sessionA, false, func(g archive.Group) archive.Group { return revoke(g, sessionB) }, invalid},
		"the last is revoked":       {sessionA, false, func(g archive.Group) archive.Group { return revoke(g, sessionC) }, invalid},
		"the last does not exist":   {sessionA, false, func(g archive.Group) archive.Group { return without(g, sessionC) }, invalid},
		"the last's identity":       {sessionA, false, changesIdentity(sessionC), invalid},
		"the second's route shut":   {sessionA, false, func(g archive.Group) archive.Group { g[sessionB].Route.AgentAccess = false; return g }, invalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for version, a := range map[string]*archive.Archive{"v1": newV1(t, fieldsV1()), "v2": newV2(t, fieldsV2())} {
				g := group(crm)
				if version == "v2" {
					g = group(erp)
				}
				if enrolled(t, a, g); !tc.waiting {
					for _, id := range []identity.UUID{sessionB, sessionC} {
						if _, err := a.Confirm(id, g, instant); err != nil {
							t.Fatal(err)
						}
					}
				}
				g = tc.change(g)
				wantRefusal(t, tc.want, a, func() error { return a.MayAppend(tc.bearer, g, later) })
			}
		})
	}
}
