package postgres

import (
	"context"
	"errors"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"

	"verbatim.internal/pkg/contracts/cloudevent"
	"verbatim.internal/services/auditview/internal/app"
	"verbatim.internal/services/auditview/internal/readmodel"
)

// Parked implements app.ParkedStore.
func (s *Store) Parked(ctx context.Context) ([]app.ParkedStream, error) {
	rows, err := s.db.Pool.Query(ctx, `
select stream_kind, stream_id, min(version), max(version), count(*),
       coalesce((array_agg(error order by version, part) filter (where error is not null))[1], ''), min(parked_at)
from parked_messages
group by stream_kind, stream_id
order by stream_kind, stream_id`)
	if err != nil {
		return nil, readError(err)
	}
	parked, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (app.ParkedStream, error) {
		var p app.ParkedStream
		err := row.Scan(&p.Stream.Kind, &p.Stream.ID, &p.FromVersion, &p.ToVersion, &p.Count, &p.Error, &p.Since)
		p.Since = p.Since.UTC()
		return p, err
	})
	return parked, readError(err)
}

// CountStreams implements app.ParkedStore.
func (s *Store) CountStreams(ctx context.Context) (int64, error) {
	var n int64
	err := s.db.Pool.QueryRow(ctx, `select count(*) from streams where version > 0`).Scan(&n)
	return n, readError(err)
}

// Applied implements app.ProjectionStore.
func (s *Store) Applied(ctx context.Context, streams []readmodel.Stream) (map[readmodel.Stream]app.StreamState, error) {
	kinds, ids := make([]string, len(streams)), make([]string, len(streams))
	for i, stream := range streams {
		kinds[i], ids[i] = stream.Kind, stream.ID
	}
	rows, err := s.db.Pool.Query(ctx, sqlApplied, kinds, ids)
	if err != nil {
		return nil, readError(err)
	}
	states := make(map[readmodel.Stream]app.StreamState, len(streams))
	var stream readmodel.Stream
	var state app.StreamState
	_, err = pgx.ForEachRow(rows, []any{&stream.Kind, &stream.ID, &state.Applied, &state.Parked}, func() error {
		states[stream] = state
		return nil
	})
	return states, readError(err)
}

// StreamsAfter returns the streams of a kind that come after an id, at most limit, by id.
func (s *Store) StreamsAfter(ctx context.Context, kind, after string, limit int) ([]string, error) {
	rows, err := s.db.Pool.Query(ctx, `
select stream_id from streams where stream_kind = $1 and stream_id > $2 and version > 0 order by stream_id limit $3`, kind, after, limit)
	if err != nil {
		return nil, readError(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return ids, readError(err)
}

// Each stream is looked up by its key, whatever plan is cached.
const sqlApplied = `
select k.kind, k.id, s.version, exists (select from parked_messages p where p.stream_kind = k.kind and p.stream_id = k.id)
from unnest($1::text[], $2::text[]) as k (kind, id)
cross join lateral (select version from streams where stream_kind = k.kind and stream_id = k.id limit 1) as s`

// errParkedEvent is a parked message that somebody changed by hand.
var errParkedEvent = errors.New("a parked message is not the JSON of an event")

// ParkedEvents implements app.ParkedStore.
func (s *Store) ParkedEvents(ctx context.Context, stream readmodel.Stream, afterVersion int64, afterPart, limit int) ([]cloudevent.Event, error) {
	rows, err := s.db.Pool.Query(ctx, `
select event from parked_messages
where stream_kind = $1 and stream_id = $2 and (version, part) > ($3, $4)
order by version, part
limit $5`, stream.Kind, stream.ID, afterVersion, afterPart, limit)
	if err != nil {
		return nil, readError(err)
	}
	events, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (cloudevent.Event, error) {
		var body string
		var e cloudevent.Event
		if err := row.Scan(&body); err != nil {
			return e, err
		}
		if json.Unmarshal([]byte(body), &e) != nil || e.Validate() != nil {
			return e, errParkedEvent
		}
		return e, nil
	})
	return events, readError(err)
}
