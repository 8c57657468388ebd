package archive_test

import (
	"slices"
	"strings"
	"testing"

	"verbatim.internal/pkg/domain/archive"
	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/pkg/domain/refusal"
)

func uuids(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = sessionUUID(i)
	}
	return ids
}

func TestCreationsV1AreValidated(t *testing.T) {
	t.Parallel()
	upperB := strings.ToUpper(string(sessionB))
	for name, tc := range map[string]struct {
		change func(*archive.FieldsV1)
		ok     bool
	}{
		"as it is":                 {func(*archive.FieldsV1) {}, true},
		"archive id in upper case": {func(f *archive.FieldsV1) { f.ClientArchiveID = strings.ToUpper(archiveID) }, true},
		"no archive id":            {func(f *archive.FieldsV1) { f.ClientArchiveID = "" }, false},
		"archive id that is none":  {func(f *archive.FieldsV1) { f.ClientArchiveID = "archive-1" }, false},
		"no conversation":          {func(f *archive.FieldsV1) { f.ClientConversationID = "" }, false},
		"128 characters":           {func(f *archive.FieldsV1) { f.ClientConversationID = strings.Repeat("c", 128) }, true},
		"129 characters":           {func(f *archive.FieldsV1) { f.ClientConversationID = strings.Repeat("c", 129) }, false},
		"no route":                 {func(f *archive.FieldsV1) { f.Route = "" }, false},
		"route auto":               {func(f *archive.FieldsV1) { f.Route = "auto" }, false},
		"route in upper case":      {func(f *archive.FieldsV1) { f.Route = "Customers" }, false},
		"no members":               {func(f *archive.FieldsV1) { f.MemberSessionIDs, f.MemberLabels = nil, nil }, false},
		"64 members":               {func(f *archive.FieldsV1) { f.MemberSessionIDs, f.MemberLabels = uuids(64), nil }, true},
		"65 members":               {func(f *archive.FieldsV1) { f.MemberSessionIDs, f.MemberLabels = uuids(65), nil }, false},
		"a member twice":           {func(f *archive.FieldsV1) { f.MemberSessionIDs = append(f.MemberSessionIDs, string(sessionA)) }, false},
		"twice, in another case":   {func(f *archive.FieldsV1) { f.MemberSessionIDs = append(f.MemberSessionIDs, upperB) }, false},
		"a member that is no UUID": {func(f *archive.FieldsV1) { f.MemberSessionIDs[1] = "b" }, false},
		"no labels":                {func(f *archive.FieldsV1) { f.MemberLabels = nil }, true},
		"label key in upper case":  {func(f *archive.FieldsV1) { f.MemberLabels = map[string]string{upperB: "B"} }, true},
		"a label twice by case":    {func(f *archive.FieldsV1) { f.MemberLabels[upperB] = "Store B" }, false},
		"a label for no member":    {func(f *archive.FieldsV1) { f.MemberLabels[sessionUUID(1)] = "D" }, false},
		"a label key no UUID":      {func(f *archive.FieldsV1) { f.MemberLabels["b"] = "B" }, false},
		"a label key empty":        {func(f *archive.FieldsV1) { f.MemberLabels[""] = "B" }, false},
		"128 units":                {labelV1(strings.Repeat("é", 128)), true},
		"129 units":                {labelV1(strings.Repeat("a", 129)), false},
		"64 astral characters":     {labelV1(strings.Repeat("😀", 64)), true},
		"64 astral and one":        {labelV1(strings.Repeat("😀", 64) + "a"), false},
		"an empty label":           {labelV1(""), false},
		"a blank label":            {labelV1("\u2003"), false},
		"a label with a control":   {labelV1("a\x00"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := fieldsV1()
			tc.change(&f)
			c, err := archive.NewCreationV1(f)
			wantCreation(t, archive.CommonBinding, tc.ok, c, err)
		})
	}
}

func labelV1(label string) func(*archive.FieldsV1) {
	return func(f *archive.FieldsV1) { f.MemberLabels[string(sessionB)] = label }
}

func wantCreation(t *testing.T, version int, ok bool, c archive.Creation, err error) {
	t.Helper()
	switch {
	case ok && (err != nil || c.MembershipVersion() != version):
		t.Errorf("got version %d, %v", c.MembershipVersion(), err)
	case !ok && refusal.CodeOf(err) != refusal.InvalidRequest:
		t.Errorf("got %v", err)
	}
}

func TestCreationsV2AreValidated(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*archive.FieldsV2)
		ok     bool
	}{
		"as it is":                {func(*archive.FieldsV2) {}, true},
		"archive id that is none": {func(f *archive.FieldsV2) { f.ClientArchiveID = "" }, false},
		"conversation invalid":    {func(f *archive.FieldsV2) { f.ClientConversationID = "-" }, false},
		"no members":              {func(f *archive.FieldsV2) { f.Members = nil }, false},
		"64 members":              {func(f *archive.FieldsV2) { f.Members = membersV2(64) }, true},
		"65 members":              {func(f *archive.FieldsV2) { f.Members = membersV2(65) }, false},
		"a session twice":         {func(f *archive.FieldsV2) { f.Members[0].SessionID = string(sessionA) }, false},
		"twice, for two routes": {func(f *archive.FieldsV2) {
			f.Members = append(f.Members, archive.MemberFields{SessionID: strings.ToUpper(string(sessionA)), ClientAppID: "crm-demo", Route: "returns"})
		}, false},
		"no session":          {func(f *archive.FieldsV2) { f.Members[1].SessionID = "" }, false},
		"no client":           {func(f *archive.FieldsV2) { f.Members[1].ClientAppID = "" }, false},
		"client invalid":      {func(f *archive.FieldsV2) { f.Members[1].ClientAppID = "ERP" }, false},
		"client auto":         {func(f *archive.FieldsV2) { f.Members[1].ClientAppID = "auto" }, true},
		"no route":            {func(f *archive.FieldsV2) { f.Members[1].Route = "" }, false},
		"route auto":          {func(f *archive.FieldsV2) { f.Members[1].Route = "auto" }, false},
		"128 units":           {func(f *archive.FieldsV2) { f.Members[1].Label = ptr(strings.Repeat("€", 128)) }, true},
		"129 units":           {func(f *archive.FieldsV2) { f.Members[1].Label = ptr(strings.Repeat("€", 129)) }, false},
		"64 astral and one":   {func(f *archive.FieldsV2) { f.Members[1].Label = ptr(strings.Repeat("😀", 64) + "a") }, false},
		"an empty label":      {func(f *archive.FieldsV2) { f.Members[1].Label = ptr("") }, false},
		"a blank label":       {func(f *archive.FieldsV2) { f.Members[1].Label = ptr("\ufeff\t") }, false},
		"one label for two":   {func(f *archive.FieldsV2) { f.Members[0].Label = ptr("ERP account") }, true},
		"no label, for B too": {func(f *archive.FieldsV2) { f.Members[1].Label = nil }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := fieldsV2()
			tc.change(&f)
			c, err := archive.NewCreationV2(f)
			wantCreation(t, archive.MemberBindings, tc.ok, c, err)
		})
	}
}

func membersV2(n int) []archive.MemberFields {
	members := make([]archive.MemberFields, n)
	for i := range members {
		members[i] = archive.MemberFields{SessionID: sessionUUID(i), ClientAppID: "crm-demo", Route: "customers"}
	}
	return members
}

func TestWhatACreationMakes(t *testing.T) {
	t.Parallel()
	f1 := fieldsV1()
	f1.ClientArchiveID = strings.ToUpper(archiveID)
	f1.MemberSessionIDs = []string{strings.ToUpper(string(sessionC)), string(sessionA), string(sessionB)}
	for version, a := range map[int]*archive.Archive{archive.CommonBinding: newV1(t, f1), archive.MemberBindings: newV2(t, fieldsV2())} {
		if a.ConversationID != serverID || a.ClientArchiveID != archiveID || a.ClientConversationID != conversation ||
			a.CreatorSessionID != sessionA || a.Binding != crm || a.MembershipVersion != version ||
			a.State != archive.Enrolling || a.ConfirmedCount != 0 || a.StreamVersion != 0 || a.LastSequence != 0 ||
			a.LastTurnStatus != archive.NoTurn || !a.CreatedAt.Equal(instant) || !a.UpdatedAt.Equal(instant) {
			t.Errorf("v%d: got %+v", version, a)
		}
		b, label := crm, "Store B"
		if version == archive.MemberBindings {
			b, label = erp, "ERP account"
		}
		want := []archive.Member{
			{SessionID: sessionA, Binding: crm}, {SessionID: sessionB, Binding: b, Label: label}, {SessionID: sessionC, Binding: crm},
		}
		if !slices.Equal(a.Members, want) {
			t.Errorf("v%d: members %+v", version, a.Members)
		}
		for i, display := range []string{string(sessionA), label, string(sessionC)} {
			if got := a.Members[i].Display(); got != display {
				t.Errorf("v%d: member %d is shown as %q", version, i, got)
			}
			if m := a.Member(want[i].SessionID); m != &a.Members[i] {
				t.Errorf("v%d: member %d is not found", version, i)
			}
		}
		if a.Member("") != nil || a.Member(identity.UUID(sessionUUID(1))) != nil {
			t.Errorf("v%d: a stranger is a member", version)
		}
	}
}

func TestWhoMayCreate(t *testing.T) {
	t.Parallel()
	stranger := identity.UUID(sessionUUID(1))
	for name, tc := range map[string]struct {
		bearer identity.Bearer
		v1, v2 refusal.Code
	}{
		"a member":                    {bearerA, "", ""},
		"another member":              {identity.Bearer{SessionID: sessionC, ClientAppID: "crm-demo"}, "", ""},
		"member of another client":    {identity.Bearer{SessionID: sessionB, ClientAppID: "erp-demo"}, "", ""},
		"its member names another":    {identity.Bearer{SessionID: sessionB, ClientAppID: "crm-demo"}, "", refusal.AuthorizationInvalid},
		"a stranger":                  {identity.Bearer{SessionID: stranger, ClientAppID: "crm-demo"}, refusal.NotFound, refusal.NotFound},
		"a stranger of a third":       {identity.Bearer{SessionID: stranger, ClientAppID: "other"}, refusal.NotFound, refusal.NotFound},
		"client differs by case only": {identity.Bearer{SessionID: sessionA, ClientAppID: "CRM-demo"}, "", refusal.AuthorizationInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c1, err1 := archive.NewCreationV1(fieldsV1())
			c2, err2 := archive.NewCreationV2(fieldsV2())
			if err1 != nil || err2 != nil {
				t.Fatal(err1, err2)
			}
			if _, err := c1.New(serverID, tc.bearer, instant); refusal.CodeOf(err) != tc.v1 {
				t.Errorf("v1: got %v", err)
			}
			if _, err := c2.New(serverID, tc.bearer, instant); refusal.CodeOf(err) != tc.v2 {
				t.Errorf("v2: got %v", err)
			}
		})
	}
}

// The header shows the writer's binding, whatever the order of the members.
func TestTheWriterIsTheBearerNotTheFirst(t *testing.T) {
	t.Parallel()
	c, err := archive.NewCreationV2(fieldsV2())
	if err != nil {
		t.Fatal(err)
	}
	a, err := c.New(serverID, identity.Bearer{SessionID: sessionB, ClientAppID: "erp-demo"}, instant)
	if err != nil || a.Binding != erp || a.CreatorSessionID != sessionB {
		t.Errorf("got %+v, %v", a, err)
	}
	b, err := c.New(serverID, bearerA, instant)
	if err != nil || b.Binding != crm {
		t.Errorf("a creation is usable once: %+v, %v", b, err)
	}
	if &a.Members[0] == &b.Members[0] {
		t.Error("two archives share their members")
	}
}
