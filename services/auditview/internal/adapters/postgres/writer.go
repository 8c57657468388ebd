package postgres

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"verbatim.internal/services/auditview/internal/readmodel"
)

// writer queues one statement for each set that is not empty.
type writer struct{ batch *pgx.Batch }

// exactly checks that a statement changed n rows: fewer means that the read model does
// not hold what the message builds on.
func (w *writer) exactly(n int, sql string, args ...any) {
	w.batch.Queue(sql, args...).Exec(func(tag pgconn.CommandTag) error {
		if tag.RowsAffected() != int64(n) {
			return errInconsistent
		}
		return nil
	})
}

// complete reads whether a snapshot is incomplete.
func complete(row pgx.Row) error {
	var incomplete bool
	if err := row.Scan(&incomplete); err != nil {
		return err
	}
	if incomplete {
		return errIncomplete
	}
	return nil
}

func (w *writer) versions(versions []readmodel.StreamVersion) {
	if len(versions) == 0 {
		return
	}
	var kind, id column[string]
	var version column[int64]
	for _, v := range versions {
		kind.add(v.Stream.Kind)
		id.add(v.Stream.ID)
		version.add(v.Version)
	}
	w.exactly(len(versions), sqlSetVersions, kind, id, version)
}

func (w *writer) unparked(unparked []readmodel.Unparked) {
	if len(unparked) == 0 {
		return
	}
	var kind, id column[string]
	var version column[int64]
	var part column[int]
	for _, u := range unparked {
		kind.add(u.Stream.Kind)
		id.add(u.Stream.ID)
		version.add(u.Version)
		part.add(u.Part)
	}
	w.batch.Queue(sqlUnpark, kind, id, version, part)
}

func (w *writer) parked(parked []readmodel.Parked, now time.Time) error {
	if len(parked) == 0 {
		return nil
	}
	var kind, id, typ, event column[string]
	var version column[int64]
	var part column[int]
	var reason column[*string]
	for _, p := range parked {
		body, err := json.Marshal(p.Event, jsontext.PreserveRawStrings(true))
		if err != nil {
			return fmt.Errorf("write a parked message: %w", errUnwritable)
		}
		kind.add(p.Stream.Kind)
		id.add(p.Stream.ID)
		version.add(p.Version)
		part.add(p.Part)
		typ.add(p.Event.Type)
		event.add(string(body))
		if p.Err != nil {
			text := p.Err.Error()
			reason.add(&text)
		} else {
			reason.add(nil)
		}
	}
	w.batch.Queue(sqlPark, kind, id, version, part, typ, event, reason, now)
	return nil
}
