package postgres

import (
	"context"
	"database/sql"

	"gorm.io/gorm"

	"verbatim.internal/services/auditview/internal/app"
)

// snapshot reads in one snapshot of the database.
func (s *Store) snapshot(ctx context.Context, read func(tx *gorm.DB) error) error {
	return s.db.Gorm.WithContext(ctx).Transaction(read, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
}

const sqlArchiveColumns = `conversation_id, client_archive_id, client_conversation_id, client_app_id, route_key,
	state, member_count, confirmed_count, last_sequence, message_count, turn_count, last_turn_status, created_at, updated_at`

// Archives implements app.ReadStore.
func (s *Store) Archives(ctx context.Context, limit int, offset int64) ([]app.Archive, error) {
	var archives []app.Archive
	err := s.db.Gorm.WithContext(ctx).Raw(`
select `+sqlArchiveColumns+`
from archives
order by updated_at desc, conversation_id desc
limit ? offset ?`, limit, offset).Scan(&archives).Error
	return archives, readError(err)
}

// Detail implements app.ReadStore.
func (s *Store) Detail(ctx context.Context, conversationID string, after int64, limit, maxText int) (
	archive app.Archive, members []app.Member, events []app.Event, err error,
) {
	found := false
	err = s.snapshot(ctx, func(tx *gorm.DB) error {
		header := tx.Raw(`select `+sqlArchiveColumns+` from archives where conversation_id = ?`, conversationID).Scan(&archive)
		if found = header.RowsAffected == 1; header.Error != nil || !found {
			return header.Error
		}
		err := tx.Raw(`
select session_id, display_label, client_app_id, route_key, client_name, confirmed_at, principal, on_behalf_of
from archive_members
where conversation_id = ?
order by session_id`, conversationID).Scan(&members).Error
		if err != nil {
			return err
		}
		return tx.Raw(sqlEvents, conversationID, after, archive.LastSequence, limit, maxText).Scan(&events).Error
	})
	switch {
	case err != nil:
		return app.Archive{}, nil, nil, readError(err)
	case !found:
		return app.Archive{}, nil, nil, app.ErrArchiveNotFound
	default:
		return archive, members, events, nil
	}
}

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
		where conversation_id = $1::uuid and sequence > $2::bigint and sequence <= $3::bigint
		order by sequence
		limit $4
	) page
	window w as (order by sequence)
) fits
where text <= $5::bigint or position = 1
order by sequence`
