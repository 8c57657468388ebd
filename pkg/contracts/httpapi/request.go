package httpapi

// Create is the body of a creation, v1 or v2: what is absent is nil.
type Create struct {
	Schema               *string                   `json:"schema"`
	ClientArchiveID      string                    `json:"client_archive_id"`
	ClientConversationID string                    `json:"client_conversation_id"`
	Route                *string                   `json:"route"`
	MemberSessionIDs     *memberList[string]       `json:"member_session_ids"`
	MemberLabels         *labels                   `json:"member_labels"`
	Members              *memberList[CreateMember] `json:"members"`
}

// CreateMember is one member of a v2 creation.
type CreateMember struct {
	SessionID   string  `json:"session_id"`
	ClientAppID string  `json:"client_app_id"`
	Route       string  `json:"route"`
	Label       *string `json:"label"`
}

// DecodeCreate reads a creation and tells the two schemas apart: v1 has no
// schema and no members; v2 names its schema and has no top-level route,
// member_session_ids or member_labels. Everything else is ErrInvalid.
func DecodeCreate(data []byte) (c Create, v2 bool, err error) {
	if err := Decode(data, &c); err != nil {
		return Create{}, false, err
	}
	if c.Schema == nil {
		if c.Members != nil || c.Route == nil || c.MemberSessionIDs == nil {
			return Create{}, false, ErrInvalid
		}
		return c, false, nil
	}
	if *c.Schema != SchemaCreateV2 || c.Members == nil ||
		c.Route != nil || c.MemberSessionIDs != nil || c.MemberLabels != nil {
		return Create{}, false, ErrInvalid
	}
	return c, true, nil
}

// DecodeConfirm accepts exactly {}.
func DecodeConfirm(data []byte) error { return Decode(data, &struct{}{}) }
