package postgres

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"verbatim.internal/pkg/contracts/httpapi"
	"verbatim.internal/pkg/contracts/registryv1"
	"verbatim.internal/services/ingest/internal/app"
)

// entry is one entry of the registry on its way from what is stored to what is wanted.
type entry struct {
	kind, name string
	found      bool
	fields     []string // what differs, when it was found
	changes    []registryv1.FieldChange
}

// differs adds a field whose values are nobody's business.
func (e *entry) differs(field string, same bool) {
	if e.found && !same {
		e.fields = append(e.fields, field)
	}
}

// shows adds a field whose values are recorded. Of a new entry all values are, that have one.
func shows[T any](e *entry, field string, from, to T, same bool) {
	e.differs(field, same)
	switch {
	case !e.found:
		if value := shown(to); value.Kind() != jsontext.KindNull {
			e.changes = append(e.changes, registryv1.FieldChange{Field: field, From: jsontext.Value("null"), To: value})
		}
	case !same:
		e.changes = append(e.changes, registryv1.FieldChange{Field: field, From: shown(from), To: shown(to)})
	}
}

// shown is a value as it is recorded: an instant has the form of the wire.
func shown(v any) jsontext.Value {
	switch t := v.(type) {
	case time.Time:
		v = httpapi.FormatTime(t)
	case *time.Time:
		if t == nil {
			return jsontext.Value("null")
		}
		v = httpapi.FormatTime(*t)
	}
	value, err := json.Marshal(v)
	if err != nil {
		panic("postgres: a recorded field that is not JSON") // a programmer's error: they are texts, switches and lists
	}
	return value
}

// write creates the wanted row or updates the columns that differ from the stored one.
// Every update locks the row, a new token's too: that is what puts the numbers of an
// entry's changes in order.
func write[T any](a *application, e *entry, wanted *T) error {
	tx := a.tx
	switch {
	case !e.found && !a.records:
		tx = tx.Omit("Instructions").Create(wanted)
	case !e.found:
		tx = tx.Create(wanted)
	case len(e.fields) > 0:
		tx = tx.Select(append(slices.Clone(e.fields), "updated_at")).Updates(wanted)
	}
	if tx.Error != nil {
		return fmt.Errorf("%s %s: %w", e.kind, e.name, tx.Error)
	}
	return nil
}

// done says what became of an entry and records it.
func (a *application) done(e *entry) error {
	action := app.Unchanged
	switch {
	case !e.found:
		action = app.Created
	case slices.Contains(e.fields, "revoked_at"):
		action = app.Revoked
	case len(e.fields) > 0:
		action = app.Updated
	}
	a.result.Changes = append(a.result.Changes, app.Change{Kind: e.kind, Name: e.name, Action: action, Fields: e.fields})
	if action == app.Unchanged || !a.records {
		return nil
	}
	partition, err := recordChange(a.tx, registryChange{
		kind: e.kind, name: e.name, action: action, fields: e.fields, changes: e.changes, actor: a.By,
	}, a.Now, a.trace)
	a.partitions = append(a.partitions, partition)
	return err
}

// onlyToken returns the hash of the token that is to be the only one, nil to keep what is stored.
func (a *application) onlyToken(e *entry, stored [][]byte, given, prefix string) []byte {
	if given == "" {
		if len(stored) > 0 {
			return nil
		}
		given = a.generate(e.kind, e.name, prefix)
	}
	hash := app.HashToken(given)
	if len(stored) == 1 && bytes.Equal(stored[0], hash) {
		return nil
	}
	e.differs("token", false)
	return hash
}

func same[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }
