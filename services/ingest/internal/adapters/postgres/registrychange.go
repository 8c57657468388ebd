package postgres

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"gorm.io/gorm"

	"verbatim.internal/pkg/contracts/registryv1"
	"verbatim.internal/pkg/platform/transport"
	"verbatim.internal/services/ingest/internal/app"
)

// registryChange is what is recorded of one entry's change.
type registryChange struct {
	kind, name, action string
	fields             []string
	changes            []registryv1.FieldChange
	actor              app.Actor
}

type registryChangeRow struct {
	ChangeID   string `gorm:"primaryKey"`
	Kind       string
	Name       string
	Action     string
	Fields     textArray
	Changes    string
	ActorKind  string
	ActorName  string
	RecordedAt time.Time
}

// TableName implements gorm's Tabler.
func (registryChangeRow) TableName() string { return "bz_registry_changes" }

// recordChange records a change and its outbox message in the transaction that made it,
// after the entry's row was written and so locked: that is what puts the numbers of its
// changes in order. It returns the outbox partition to wake. Before migration 059 there is
// nothing to record in.
func recordChange(tx *gorm.DB, c registryChange, now time.Time, trace *string) (partition int, err error) {
	if c.fields == nil {
		c.fields = []string{}
	}
	if c.changes == nil {
		c.changes = []registryv1.FieldChange{}
	}
	changes, err := json.Marshal(c.changes, jsontext.PreserveRawStrings(true))
	if err != nil {
		return -1, fmt.Errorf("%s %s: %w", c.kind, c.name, err)
	}
	row := registryChangeRow{
		ChangeID: uuid.NewString(), Kind: c.kind, Name: c.name, Action: c.action, Fields: c.fields, Changes: string(changes),
		ActorKind: c.actor.Kind, ActorName: c.actor.Name, RecordedAt: now,
	}
	if err := tx.Create(&row).Error; err != nil {
		return -1, err
	}
	partition = transport.Partition(row.ChangeID)
	return partition, tx.Create(&outboxRow{
		Partition: partition, StreamKind: registryv1.StreamKind, StreamID: row.ChangeID, Version: 1,
		Type: registryv1.TypeRecorded, Payload: "{}", TextBytes: len(changes), TraceContext: trace, CreatedAt: now,
	}).Error
}
