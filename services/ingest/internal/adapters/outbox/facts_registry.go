package outbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5"

	"verbatim.internal/pkg/contracts/cloudevent"
	"verbatim.internal/pkg/contracts/registryv1"
)

const changesByID = `
	select change_id::text, number, kind, name, action, fields, changes::text, actor_kind, actor_name, recorded_at
	from bz_registry_changes where change_id = any($1::uuid[])`

// changeData makes the data of a change of the registry, for a message or a snapshot.
func (f *facts) changeData(id string) (jsontext.Value, error) {
	c, ok := f.changes[id]
	if !ok {
		return nil, errors.New("the change is not stored")
	}
	return registryv1.Marshal(c)
}

func (f *facts) scanChanges(rows pgx.Rows) error {
	for rows.Next() {
		var c registryv1.Change
		var changes string
		if err := rows.Scan(&c.ChangeID, &c.Number, &c.Kind, &c.Name, &c.Action, &c.Fields, &changes,
			&c.Actor.Kind, &c.Actor.Name, &c.RecordedAt); err != nil {
			return fmt.Errorf("read a change of the registry: %w", err)
		}
		c.RecordedAt = c.RecordedAt.UTC()
		if err := json.Unmarshal([]byte(changes), &c.Changes, json.RejectUnknownMembers(true)); err != nil {
			c.Number = 0 // which no message may have
		}
		f.changes[c.ChangeID] = c
	}
	return rows.Err()
}

// changeSnapshot sends a change of the registry again, which is its stream's only version.
// Before migration 059 there is none.
func (s *store) changeSnapshot(ctx context.Context, id, trace string, emit func([]cloudevent.Event) error) error {
	f, err := s.read(ctx, names{changes: []string{id}})
	if isMissing(err) || err == nil && len(f.changes) == 0 {
		return ErrNoStream
	}
	if err != nil {
		return err
	}
	data, err := f.changeData(id)
	if err != nil {
		return fmt.Errorf("%w: %w", errBroken, err)
	}
	e := cloudevent.New(registryv1.StreamKind, id, 1, 1, registryv1.TypeSnapshot, f.changes[id].RecordedAt, data)
	e.TraceParent = trace
	return emit([]cloudevent.Event{e})
}
