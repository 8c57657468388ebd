package postgres

import (
	"context"
	"database/sql"

	"github.com/jackc/pgx/v5"
	"gorm.io/gorm"

	"verbatim.internal/services/auditview/internal/app"
)

// snapshot reads in one snapshot of the database.
func (s *Store) snapshot(ctx context.Context, read func(tx *gorm.DB) error) error {
	return s.db.Gorm.WithContext(ctx).Transaction(read, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
}

// together reads in one snapshot of the database and one round trip. A connection on
// which a statement failed is closed.
func (s *Store) together(ctx context.Context, queue func(b *pgx.Batch)) error {
	b := &pgx.Batch{}
	b.Queue("begin isolation level repeatable read read only")
	queue(b)
	b.Queue("commit")
	return s.db.Pool.SendBatch(ctx, b).Close()
}

// into collects the rows of a queued statement in structs, by their columns' names.
func into[T any](rows *[]T) func(pgx.Rows) error {
	return func(found pgx.Rows) (err error) {
		*rows, err = pgx.CollectRows(found, pgx.RowToStructByName[T])
		return err
	}
}

const sqlArchiveColumns = `conversation_id, client_archive_id, client_conversation_id, client_app_id, route_key,
	state, member_count, confirmed_count, last_sequence, message_count, turn_count, last_turn_status, created_at, updated_at`

// Archives implements app.ReadStore.
func (s *Store) Archives(ctx context.Context, limit int, offset int64) ([]app.Archive, error) {
	rows, err := s.db.Pool.Query(ctx, `
select `+sqlArchiveColumns+`
from archives
order by updated_at desc, conversation_id desc
limit $1 offset $2`, limit, offset)
	if err != nil {
		return nil, readError(err)
	}
	archives, err := pgx.CollectRows(rows, pgx.RowToStructByName[app.Archive])
	return archives, readError(err)
}

// Detail implements app.ReadStore.
func (s *Store) Detail(ctx context.Context, conversationID string, after int64, limit, maxText int) (
	app.Archive, []app.Member, []app.Event, error,
) {
	var headers []app.Archive
	var members []app.Member
	var events []app.Event
	err := s.together(ctx, func(b *pgx.Batch) {
		b.Queue(`select `+sqlArchiveColumns+` from archives where conversation_id = $1`, conversationID).Query(into(&headers))
		b.Queue(sqlMembers, conversationID).Query(into(&members))
		b.Queue(sqlEvents, conversationID, after, limit, maxText).Query(into(&events))
	})
	switch {
	case err != nil:
		return app.Archive{}, nil, nil, readError(err)
	case len(headers) == 0:
		return app.Archive{}, nil, nil, app.ErrArchiveNotFound
	default:
		return headers[0], members, events, nil
	}
}

const sqlMembers = `
select session_id, display_label, client_app_id, route_key, client_name, confirmed_at, principal, on_behalf_of
from archive_members
where conversation_id = $1
order by session_id`

// The header's last sequence bounds the page: events above it belong to a snapshot that
// is not complete. The length of a text is known without reading the text, and each event
// is read once, by one range of the key, however the server prepared the statement.
const sqlEvents = `
select event_id, sequence, client_turn_id, kind, content, status, run_id, member_session_id, thread_id, created_at
from (
	select page.*, row_number() over w as position, coalesce(sum(octet_length(content)) over w, 0) as text
	from (
		select event_id, sequence, client_turn_id, kind, content, status, run_id, member_session_id, thread_id, created_at
		from archive_events
		where conversation_id = $1::uuid and sequence > $2::bigint
			and sequence <= (select last_sequence from archives where conversation_id = $1::uuid)
		order by sequence
		limit $3
	) page
	window w as (order by sequence)
) fits
where text <= $4::bigint or position = 1
order by sequence`
