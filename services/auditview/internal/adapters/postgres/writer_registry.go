package postgres

import (
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"verbatim.internal/pkg/contracts/registryv1"
)

// registry writes changes of the registry. A restored one takes its number from another
// change: an operator says that ingest, which drew the number again, is right.
func (w *writer) registry(changes []registryv1.Change, restored bool) error {
	if len(changes) == 0 {
		return nil
	}
	var (
		id, kind, name, action, fields, values, actorKind, actorName column[string]
		number                                                       column[int64]
		recorded                                                     column[time.Time]
	)
	for _, c := range changes {
		value, err := json.Marshal(c.Changes, jsontext.PreserveRawStrings(true))
		if err != nil {
			return fmt.Errorf("write a change of the registry: %w", errUnwritable)
		}
		id.add(c.ChangeID)
		number.add(c.Number)
		kind.add(c.Kind)
		name.add(c.Name)
		action.add(c.Action)
		fields.add(arrayOf(c.Fields))
		values.add(string(value))
		actorKind.add(c.Actor.Kind)
		actorName.add(c.Actor.Name)
		recorded.add(c.RecordedAt)
	}
	sql := sqlInsertRegistryChanges
	if restored {
		w.batch.Queue(sqlFreeNumbers, id, number)
		sql += sqlReplaceRegistryChanges
	}
	w.batch.Queue(sql, id, number, kind, name, action, fields, values, actorKind, actorName, recorded)
	return nil
}

// arrayOf writes names, which are words, as PostgreSQL writes an array: a column of arrays
// cannot travel as an array of arrays of different lengths.
func arrayOf(names []string) string {
	if len(names) == 0 {
		return "{}"
	}
	return `{"` + strings.Join(names, `","`) + `"}`
}
