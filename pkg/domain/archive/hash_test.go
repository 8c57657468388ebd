package archive_test

import (
	"crypto/sha256"
	"slices"
	"strings"
	"testing"

	"verbatim.internal/pkg/domain/archive"
	"verbatim.internal/pkg/domain/identity"
)

// The hash decides whether a repeated creation is the same. Its form is stored,
// so it must not drift.
func TestRequestHashIsTheHashOfRFC8785Bytes(t *testing.T) {
	t.Parallel()
	const v1 = `{"client_archive_id":"323e4567-e89b-42d3-a456-426614174001","client_conversation_id":"conversation-stable-id",` +
		`"members":[{"session_id":"123e4567-e89b-42d3-a456-42661417400a"},` +
		`{"label":"Store B","session_id":"123e4567-e89b-42d3-a456-42661417400b"},` +
		`{"session_id":"123e4567-e89b-42d3-a456-42661417400c"}],"membership_version":1,"route":"customers"}`
	if newV1(t, fieldsV1()).RequestHash != sha256.Sum256([]byte(v1)) {
		t.Error("v1: another hash")
	}
	const v2 = `{"client_archive_id":"323e4567-e89b-42d3-a456-426614174001","client_conversation_id":"conversation-stable-id",` +
		`"members":[{"client_app_id":"crm-demo","route":"customers","session_id":"123e4567-e89b-42d3-a456-42661417400a"},` +
		`{"client_app_id":"erp-demo","label":"ERP account","route":"orders","session_id":"123e4567-e89b-42d3-a456-42661417400b"},` +
		`{"client_app_id":"crm-demo","route":"customers","session_id":"123e4567-e89b-42d3-a456-42661417400c"}],"membership_version":2}`
	if newV2(t, fieldsV2()).RequestHash != sha256.Sum256([]byte(v2)) {
		t.Error("v2: another hash")
	}
}

func TestRequestHashOfV1(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*archive.FieldsV1)
		same   bool
	}{
		"order of members": {func(f *archive.FieldsV1) { slices.Reverse(f.MemberSessionIDs) }, true},
		"case of UUIDs": {func(f *archive.FieldsV1) {
			f.ClientArchiveID = strings.ToUpper(f.ClientArchiveID)
			f.MemberSessionIDs[1] = strings.ToUpper(f.MemberSessionIDs[1])
			f.MemberLabels = map[string]string{strings.ToUpper(string(sessionB)): "Store B"}
		}, true},
		"archive id":           {func(f *archive.FieldsV1) { f.ClientArchiveID = sessionUUID(1) }, false},
		"conversation":         {func(f *archive.FieldsV1) { f.ClientConversationID = "other" }, false},
		"case of conversation": {func(f *archive.FieldsV1) { f.ClientConversationID = "Conversation-stable-id" }, false},
		"route":                {func(f *archive.FieldsV1) { f.Route = "returns" }, false},
		"a member less":        {func(f *archive.FieldsV1) { f.MemberSessionIDs = f.MemberSessionIDs[:2] }, false},
		"a member more":        {func(f *archive.FieldsV1) { f.MemberSessionIDs = append(f.MemberSessionIDs, sessionUUID(1)) }, false},
		"another member":       {func(f *archive.FieldsV1) { f.MemberSessionIDs[2] = sessionUUID(1) }, false},
		"a label less":         {func(f *archive.FieldsV1) { f.MemberLabels = nil }, false},
		"a label more":         {func(f *archive.FieldsV1) { f.MemberLabels[string(sessionC)] = "C" }, false},
		"another label":        {func(f *archive.FieldsV1) { f.MemberLabels[string(sessionB)] = "Store B " }, false},
		"label of another": {func(f *archive.FieldsV1) {
			f.MemberLabels = map[string]string{string(sessionC): "Store B"}
		}, false},
		"the session id as label": {func(f *archive.FieldsV1) { f.MemberLabels[string(sessionC)] = string(sessionC) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := fieldsV1()
			tc.change(&f)
			if got := newV1(t, f).RequestHash == newV1(t, fieldsV1()).RequestHash; got != tc.same {
				t.Errorf("the same is %v", got)
			}
		})
	}
}

func TestRequestHashOfV2(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*archive.FieldsV2)
		same   bool
	}{
		"order of members":    {func(f *archive.FieldsV2) { slices.Reverse(f.Members) }, true},
		"case of UUIDs":       {func(f *archive.FieldsV2) { f.Members[1].SessionID = strings.ToUpper(f.Members[1].SessionID) }, true},
		"archive id":          {func(f *archive.FieldsV2) { f.ClientArchiveID = sessionUUID(1) }, false},
		"conversation":        {func(f *archive.FieldsV2) { f.ClientConversationID = "other" }, false},
		"client of a member":  {func(f *archive.FieldsV2) { f.Members[1].ClientAppID = "crm-demo" }, false},
		"route of a member":   {func(f *archive.FieldsV2) { f.Members[1].Route = "returns" }, false},
		"route of the writer": {func(f *archive.FieldsV2) { f.Members[2].Route = "returns" }, false},
		"a label less":        {func(f *archive.FieldsV2) { f.Members[1].Label = nil }, false},
		"another label":       {func(f *archive.FieldsV2) { f.Members[1].Label = ptr("erp account") }, false},
		"a member less":       {func(f *archive.FieldsV2) { f.Members = f.Members[1:] }, false},
		"bindings exchanged": {func(f *archive.FieldsV2) {
			f.Members[0].SessionID, f.Members[1].SessionID = f.Members[1].SessionID, f.Members[0].SessionID
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := fieldsV2()
			tc.change(&f)
			if got := newV2(t, f).RequestHash == newV2(t, fieldsV2()).RequestHash; got != tc.same {
				t.Errorf("the same is %v", got)
			}
		})
	}
}

// The same members under the same binding are another creation in v2.
func TestRequestHashTellsTheVersionsApart(t *testing.T) {
	t.Parallel()
	f1, f2 := fieldsV1(), fieldsV2()
	f1.MemberSessionIDs, f1.MemberLabels = []string{string(sessionA)}, nil
	f2.Members = f2.Members[2:]
	if newV1(t, f1).RequestHash == newV2(t, f2).RequestHash {
		t.Error("v1 and v2 have one hash")
	}
}

// Who creates is part of the key, not of the input.
func TestRequestHashIsTheSameForEveryCreator(t *testing.T) {
	t.Parallel()
	c, err := archive.NewCreationV1(fieldsV1())
	if err != nil {
		t.Fatal(err)
	}
	byC, err := c.New(identity.UUID(sessionUUID(9)), identity.Bearer{SessionID: sessionC, ClientAppID: "other"}, later)
	if err != nil || byC.RequestHash != newV1(t, fieldsV1()).RequestHash {
		t.Errorf("another hash, %v", err)
	}
}
