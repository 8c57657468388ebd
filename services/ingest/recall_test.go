package ingest_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// say is a batch of one message of turn t1.
func say(sequence int, eventID, content string) string {
	return fmt.Sprintf(`{"events":[{"event_id":%q,"sequence":%d,"client_turn_id":"t1","kind":"user_message","content":%q}]}`, eventID, sequence, content)
}

// written returns an archive with a turn and the events 1 to 3. The service remembers it.
func (b bundle) written(t *testing.T) (events string) {
	t.Helper()
	status, header := b.post(t, tokenA, "", `{"client_archive_id":"323e4567-e89b-42d3-a456-426614174001","client_conversation_id":"conv",
		"route":"orders","member_session_ids":["`+sessionA+`","`+sessionB+`"]}`)
	require.Equal(t, http.StatusOK, status, header)
	id, _ := header["conversation_id"].(string)
	status, header = b.post(t, tokenB, "/"+id+"/confirm", `{}`)
	require.Equal(t, http.StatusOK, status, header)
	events = "/" + id + "/events"
	for n, batch := range []string{
		`{"events":[{"event_id":"e1","sequence":1,"client_turn_id":"t1","kind":"turn_start"}]}`, say(2, "e2", "two"), say(3, "e3", "three"),
	} {
		status, ack := b.post(t, tokenA, events, batch)
		require.Equal(t, http.StatusOK, status, ack)
		require.InEpsilon(t, float64(n+1), ack["last_sequence"], 0)
	}
	return events
}

// What a service remembers of an archive and of a bearer is never believed: whatever
// changed meanwhile, an append is answered as if nothing had been remembered.
func TestWhatChangedBehindAServicesBackIsNoticed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change string
		body   string
		status int
		code   string
	}{
		"a member's session is revoked":  {`update bz_agent_sessions set revoked_at = now() where session_id = '` + sessionB + `'`, say(4, "e4", "x"), 403, "conversation_audit_authorization_invalid"},
		"the writer's session is":        {`update bz_agent_sessions set revoked_at = now() where session_id = '` + sessionA + `'`, say(4, "e4", "x"), 401, "unauthorized"},
		"the client may do nothing":      {`update bz_clients set allowed_routes = '{}'`, say(4, "e4", "x"), 403, "conversation_audit_authorization_invalid"},
		"the client is disabled":         {`update bz_clients set enabled = false`, say(4, "e4", "x"), 401, "unauthorized"},
		"the route is disabled":          {`update bz_routes set enabled = false`, say(4, "e4", "x"), 403, "conversation_audit_authorization_invalid"},
		"a member is somebody else":      {`update bz_agent_sessions set principal = '{"id":"other"}' where session_id = '` + sessionB + `'`, say(4, "e4", "x"), 403, "conversation_audit_authorization_invalid"},
		"the token is replaced":          {`delete from bz_agent_session_tokens where session_id = '` + sessionA + `'`, say(4, "e4", "x"), 401, "unauthorized"},
		"the token has expired":          {`update bz_agent_session_tokens set access_expires_at = now()`, say(4, "e4", "x"), 401, "unauthorized"},
		"the same, and a malformed body": {`delete from bz_agent_session_tokens where session_id = '` + sessionA + `'`, `{"events":`, 401, "unauthorized"},
		"nothing, and a malformed body":  {`select`, `{"events":`, 400, "invalid_request"},
		"nothing, and a used event id":   {`select`, say(4, "e2", "x"), 409, "conversation_audit_conflict"},
		"nothing, and a turn again": {
			`update bz_agent_conversation_audits set current_turn_id = null, last_turn_status = 'completed'`,
			`{"events":[{"event_id":"e4","sequence":4,"client_turn_id":"t1","kind":"turn_start"}]}`, 409, "conversation_audit_conflict",
		},
		"nothing, and another text": {`select`, say(3, "e3", "other"), 409, "conversation_audit_conflict"},
		"nothing, and a retry":      {`select`, say(3, "e3", "three"), 200, ""},
		"nothing":                   {`select`, say(4, "e4", "x"), 200, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			events := b.written(t)
			b.exec(t, tc.change)
			for range 2 { // what is noticed stays noticed
				status, answer := b.post(t, tokenA, events, tc.body)
				require.Equal(t, tc.status, status, answer)
				if tc.code != "" {
					require.Equal(t, tc.code, answer["error"])
				}
			}
		})
	}
}

// The header that is stored is moved, whatever a service remembers: also when it has the
// remembered version, as after the restoration of a backup.
func TestAnAppendMovesTheStoredHeader(t *testing.T) {
	t.Parallel()
	b := setup(t)
	events := b.written(t)
	b.exec(t, `update bz_agent_conversation_audits set message_count = message_count + 5, updated_at = updated_at + interval '1 microsecond'`)
	status, answer := b.post(t, tokenA, events, say(4, "e4", "four"))
	require.Equal(t, http.StatusOK, status, answer)
	var messages, last int
	b.query(t, `select message_count, last_sequence from bz_agent_conversation_audits`, &messages, &last)
	require.Equal(t, []int{8, 4}, []int{messages, last})
}

// Two replicas that remember the same archive append to it in turns: each sequence is
// stored once, and a rival's is a conflict.
func TestReplicasThatRememberAnArchiveAgree(t *testing.T) {
	t.Parallel()
	b := setup(t)
	events := b.written(t)
	replicas := []bundle{b, serve(t, b.db)}
	for n := 4; n < 12; n++ {
		writer, rival := replicas[n%2], replicas[(n+1)%2]
		status, answer := writer.post(t, tokenA, events, say(n, fmt.Sprintf("e%d", n), "text"))
		require.Equal(t, http.StatusOK, status, answer)
		status, answer = rival.post(t, tokenA, events, say(n, fmt.Sprintf("r%d", n), "rival"))
		require.Equal(t, http.StatusConflict, status, answer)
	}
	var stored, last, messages, version int
	b.query(t, `select count(*), max(a.last_sequence), max(a.message_count), max(a.stream_version) from bz_agent_conversation_events join bz_agent_conversation_audits a using (conversation_id)`,
		&stored, &last, &messages, &version)
	require.Equal(t, []int{11, 11, 10, 13}, []int{stored, last, messages, version})
}

func (b bundle) exec(t *testing.T, statement string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), b.db.AdminDSN)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), statement)
	require.NoError(t, err)
	require.NoError(t, conn.Close(t.Context()))
}

func (b bundle) query(t *testing.T, statement string, into ...any) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), b.db.AdminDSN)
	require.NoError(t, err)
	require.NoError(t, conn.QueryRow(t.Context(), statement).Scan(into...))
	require.NoError(t, conn.Close(t.Context()))
}
