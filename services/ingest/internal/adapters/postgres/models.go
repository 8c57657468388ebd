package postgres

import (
	"database/sql/driver"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// textArray maps a text[] column through database/sql.
type textArray []string

// Scan implements sql.Scanner.
func (a *textArray) Scan(src any) error {
	return pgtype.NewMap().SQLScanner((*[]string)(a)).Scan(src)
}

// Value implements driver.Valuer.
func (a textArray) Value() (driver.Value, error) {
	b, err := pgtype.NewMap().Encode(pgtype.TextArrayOID, pgtype.TextFormatCode, []string(a), nil)
	return string(b), err
}

type clientRow struct {
	AppID             string `gorm:"primaryKey"`
	Name              string
	AgentAuthorizeURL *string
	AllowedRoutes     textArray
	Enabled           bool
	CreatedAt         time.Time
	UpdatedAt         time.Time `gorm:"autoUpdateTime:false"` // the clock is the service's
}

// TableName implements gorm's Tabler.
func (clientRow) TableName() string { return "bz_clients" }

type routeRow struct {
	RouteKey    string `gorm:"primaryKey"`
	Name        string
	Enabled     bool
	AgentAccess bool
	Audience    *string
	// Instructions are there from migration 059 on.
	Instructions *string
	CreatedAt    time.Time
	UpdatedAt    time.Time `gorm:"autoUpdateTime:false"` // the clock is the service's
}

// TableName implements gorm's Tabler.
func (routeRow) TableName() string { return "bz_routes" }

type sessionRow struct {
	SessionID        string `gorm:"primaryKey"`
	ClientAppID      string
	DeviceLabel      string
	Principal        string
	OnBehalfOf       string
	AllowedRoutes    textArray
	RefreshExpiresAt time.Time
	RevokedAt        *time.Time
	CreatedAt        time.Time
	UpdatedAt        time.Time `gorm:"autoUpdateTime:false"` // the clock is the service's
}

// TableName implements gorm's Tabler.
func (sessionRow) TableName() string { return "bz_agent_sessions" }

type clientTokenRow struct {
	TokenHash []byte `gorm:"primaryKey"`
	AppID     string
	CreatedAt time.Time
}

// TableName implements gorm's Tabler.
func (clientTokenRow) TableName() string { return "bz_client_tokens" }

type sessionTokenRow struct {
	TokenHash       []byte `gorm:"primaryKey"`
	SessionID       string
	AccessExpiresAt time.Time
	CreatedAt       time.Time
}

// TableName implements gorm's Tabler.
func (sessionTokenRow) TableName() string { return "bz_agent_session_tokens" }

type runRow struct {
	RunID                string `gorm:"primaryKey"`
	SessionID            string
	ClientAppID          string
	RouteKey             string
	ThreadID             int64
	ClientConversationID string
	ClientTurnID         string
	StreamVersion        int64
	CreatedAt            time.Time
}

// TableName implements gorm's Tabler.
func (runRow) TableName() string { return "bz_agent_client_runs" }

type outboxRow struct {
	Partition    int
	StreamKind   string
	StreamID     string
	Version      int64
	Type         string
	Payload      string
	TextBytes    int
	TraceContext *string
	CreatedAt    time.Time
}

// TableName implements gorm's Tabler.
func (outboxRow) TableName() string { return "outbox" }
