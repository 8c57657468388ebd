package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"

	"verbatim.internal/pkg/contracts/registryv1"
	"verbatim.internal/services/auditview/internal/app"
)

// errStoredChange is a change of the registry that somebody changed by hand.
var errStoredChange = errors.New("a change of the registry is not the JSON of its fields")

// RegistryChanges implements app.RegistryStore. Each combination of filters is a statement
// of its own, so that each has its index.
func (s *Store) RegistryChanges(ctx context.Context, filter app.RegistryFilter, limit int, before int64) ([]registryv1.Change, error) {
	var where strings.Builder
	args := []any{before, limit}
	for _, condition := range []struct{ column, value string }{{"kind", filter.Kind}, {"name", filter.Name}} {
		if condition.value != "" {
			args = append(args, condition.value)
			fmt.Fprintf(&where, " and %s = $%d", condition.column, len(args))
		}
	}
	rows, err := s.db.Pool.Query(ctx, `
select change_id::text, number, kind, name, action, fields, changes::text, actor_kind, actor_name, recorded_at
from registry_changes
where number < $1`+where.String()+`
order by number desc
limit $2`, args...)
	if err != nil {
		return nil, readError(err)
	}
	changes, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (registryv1.Change, error) {
		var c registryv1.Change
		var values string
		err := row.Scan(&c.ChangeID, &c.Number, &c.Kind, &c.Name, &c.Action, &c.Fields, &values, &c.Actor.Kind, &c.Actor.Name, &c.RecordedAt)
		if err == nil && json.Unmarshal([]byte(values), &c.Changes) != nil {
			err = errStoredChange
		}
		return c, err
	})
	return changes, readError(err)
}
