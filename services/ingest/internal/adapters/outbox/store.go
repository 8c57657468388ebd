package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"verbatim.internal/pkg/contracts/archivev1"
	"verbatim.internal/pkg/contracts/cloudevent"
	"verbatim.internal/pkg/contracts/executionv1"
	"verbatim.internal/pkg/contracts/registryv1"
	"verbatim.internal/pkg/contracts/runv1"
)

const (
	// batchRows and batchBytes bound one batch: rows of the outbox, and UTF-8 of the texts they name.
	batchRows  = 256
	batchBytes = 4 << 20
	// queryTimeout bounds one read: a connection whose packets vanish must not hold a partition.
	queryTimeout = 35 * time.Second
)

const (
	deleteRows = `delete from outbox where partition = $1 and id = any($2::bigint[])`
	nextRows   = `
		select id, stream_kind, stream_id, version, type, payload::text, text_bytes, coalesce(trace_context, ''), created_at
		from outbox where partition = $1 order by id limit $2`
)

// row is one committed change that waits to be sent.
type row struct {
	id         int64
	streamKind string
	streamID   string
	version    int64
	eventType  string
	payload    string
	textBytes  int
	trace      string
	createdAt  time.Time
}

// isSnapshot reports whether the row asks for its whole stream.
func (r row) isSnapshot() bool {
	switch r.eventType {
	case archivev1.TypeSnapshot, runv1.TypeSnapshot, registryv1.TypeSnapshot, executionv1.TypeSnapshot:
		return true
	default:
		return false
	}
}

// event gives the row its envelope.
func (r row) event(data jsontext.Value) cloudevent.Event {
	e := cloudevent.New(r.streamKind, r.streamID, r.version, 0, r.eventType, r.createdAt, data)
	e.TraceParent = r.trace
	return e
}

// bareData is the payload as the data of a message: as it is or, where it is JSON for
// PostgreSQL only (which takes a name twice, and half a surrogate pair), as a string.
func (r row) bareData() jsontext.Value {
	if v := jsontext.Value(r.payload); v.IsValid() {
		return v
	}
	quoted, _ := jsontext.AppendQuote(nil, r.payload) // fails for invalid UTF-8 only, which PostgreSQL has not
	return quoted
}

// store reads what the relay sends. All it reads is committed. Headers change, and of
// executions the facts that a later word replaces; all else is immutable.
type store struct {
	pool *pgxpool.Pool
	log  *slog.Logger
}

// next deletes the handled rows and returns the next batch of at most limit rows,
// in id order, in one round trip and one transaction.
func (s *store) next(ctx context.Context, partition, limit int, handled []int64) ([]row, error) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	b := &pgx.Batch{}
	if len(handled) > 0 {
		b.Queue(deleteRows, partition, handled)
	}
	var rows []row
	b.Queue(nextRows, partition, limit).Query(func(found pgx.Rows) error {
		text := 0
		for found.Next() {
			var r row
			if err := found.Scan(&r.id, &r.streamKind, &r.streamID, &r.version, &r.eventType, &r.payload,
				&r.textBytes, &r.trace, &r.createdAt); err != nil {
				return fmt.Errorf("read the outbox: %w", err)
			}
			text += r.textBytes
			if len(rows) > 0 && (text > batchBytes || r.isSnapshot() || rows[0].isSnapshot()) {
				found.Close()
				break
			}
			rows = append(rows, r)
		}
		return found.Err()
	})
	err := s.pool.SendBatch(ctx, b).Close()
	return rows, err
}

// forget deletes handled rows.
func (s *store) forget(ctx context.Context, partition int, handled []int64) error {
	_, err := s.pool.Exec(ctx, deleteRows, partition, handled)
	return err
}

// load gives the rows the data they name and calls emit with the events of one
// message: once for ordinary rows, once a part for a snapshot. A row whose data
// cannot be made goes out with its bare payload: it is the receiver that judges
// and parks, so one bad row stops nobody else.
func (s *store) load(ctx context.Context, rows []row, emit func([]cloudevent.Event) error) error {
	if rows[0].isSnapshot() {
		p, _ := parsePayload[snapshotPayload](rows[0]) // a malformed one asks for nothing more
		err := s.snapshot(ctx, rows[0].streamKind, rows[0].streamID, p.Replace, rows[0].trace, emit)
		switch {
		case errors.Is(err, ErrNoStream):
			return nil // nothing to send
		case errors.Is(err, errBroken):
			s.bare(ctx, rows[0], err)
			return emit([]cloudevent.Event{rows[0].event(rows[0].bareData())})
		default:
			return err
		}
	}
	facts, err := s.facts(ctx, rows)
	if err != nil {
		return err
	}
	events := make([]cloudevent.Event, len(rows))
	for i, r := range rows {
		data, err := facts.data(i, r)
		if err != nil {
			s.bare(ctx, r, err)
			data = r.bareData()
		}
		events[i] = r.event(data)
	}
	return emit(events)
}

func (s *store) bare(ctx context.Context, r row, err error) {
	s.log.ErrorContext(ctx, "an outbox row does not match what is stored; it is sent bare, to be parked",
		slog.String("stream_kind", r.streamKind), slog.String("stream_id", r.streamID),
		slog.Int64("version", r.version), slog.String("error", err.Error()))
}

// reason describes a failure without its values: what a server's message quotes may be a text.
func reason(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return "SQLSTATE " + pg.Code
	}
	if err == nil {
		return ""
	}
	return err.Error()
}
