package demo

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"math/big"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
)

const (
	clientID  = "verbatim-demo"
	routeKey  = "demo-orders"
	adminName = "demo-auditor"

	accessFor  = 12 * time.Hour
	refreshFor = 24 * time.Hour

	maxThread = 1_000_000_000
)

// cast is who takes part in one run of the demo. Its tokens are made anew each time.
type cast struct {
	conversation string
	swarm        string // of the delivery
	members      [2]member
	clientToken  string
	adminToken   string
	now          time.Time
}

type member struct {
	session, label, tenant, token string
	run                           string
	thread                        int64
}

func newCast(now time.Time) (cast, error) {
	id := uuid.NewString()
	c := cast{conversation: "demo-" + id, swarm: "delivery-" + id[:8], clientToken: token("bhk_"), adminToken: token("bva_"), now: now}
	for i, m := range []member{{label: "Store Lisbon", tenant: "lisbon"}, {label: "Store Osaka", tenant: "osaka"}} {
		thread, err := rand.Int(rand.Reader, big.NewInt(maxThread))
		if err != nil {
			return cast{}, fmt.Errorf("no random numbers: %w", err)
		}
		m.session, m.run, m.token, m.thread = uuid.NewString(), uuid.NewString(), token("bha_"), thread.Int64()+1
		c.members[i] = m
	}
	return c, nil
}

// token is prefix and 32 random bytes, as every bearer is.
func token(prefix string) string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails: the program ends instead
	return prefix + base64.RawURLEncoding.EncodeToString(b[:])
}

// registry is what `verbatim apply` would be given.
func (c cast) registry() ([]byte, error) {
	sessions := make([]map[string]any, 0, len(c.members))
	runs := make([]map[string]any, 0, len(c.members))
	for _, m := range c.members {
		sessions = append(sessions, map[string]any{
			"session_id":         m.session,
			"client_app_id":      clientID,
			"device_label":       m.label,
			"principal":          map[string]any{"id": "operator-7", "tenant": m.tenant, "roles": []string{"manager"}},
			"on_behalf_of":       m.tenant + ":operator-7",
			"allowed_routes":     []string{routeKey},
			"access_token":       m.token,
			"access_expires_at":  c.now.Add(accessFor).Format(time.RFC3339),
			"refresh_expires_at": c.now.Add(refreshFor).Format(time.RFC3339),
		})
		runs = append(runs, map[string]any{
			"run_id":                 m.run,
			"session_id":             m.session,
			"client_app_id":          clientID,
			"route_key":              routeKey,
			"thread_id":              m.thread,
			"client_conversation_id": c.conversation,
			"client_turn_id":         firstTurn,
		})
	}
	return json.Marshal(map[string]any{
		"clients": []map[string]any{{
			"app_id": clientID, "name": "Verbatim demo", "agent_authorize_url": "https://demo.example.com/authorize",
			"allowed_routes": []string{routeKey}, "enabled": true, "token": c.clientToken,
		}},
		"routes": []map[string]any{{
			"route_key": routeKey, "name": "Demo orders", "enabled": true, "agent_access": true,
		}},
		"sessions": sessions,
		"runs":     runs,
	})
}

// admins is what `verbatim admin apply` would be given.
func (c cast) admins() ([]byte, error) {
	return json.Marshal(map[string]any{
		"admins": []map[string]any{{"name": adminName, "token": c.adminToken, "permissions": []string{"runs:read"}}},
	})
}
