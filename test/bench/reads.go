package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"
)

const (
	// listedArchives is how many archives the list has, and listOffset how far it is turned.
	listedArchives, listOffset = 150_000, 100_000
	// manyListed is how many it has in the large part.
	manyListed = 1_000_000
	listLimit  = 100
	// detailEvents is how many events of a kilobyte the detail shows.
	detailEvents = 200
	detailID     = "70000000-0000-4000-8000-000000000001"
)

// Archives as auditview has them; only one has events.
const (
	loadArchives = `
		insert into archives (conversation_id, client_archive_id, client_conversation_id, creator_session_id, client_app_id, route_key,
			membership_version, member_count, state, confirmed_count, last_sequence, message_count, turn_count, last_turn_status,
			text_bytes, created_at, updated_at)
		select gen_random_uuid(), gen_random_uuid(), 'listed', gen_random_uuid(), 'listed', 'orders', 1, 1, 'ready', 1, 0, 0, 0, null, 0,
			now() - n * interval '1 second', now() - n * interval '1 second'
		from generate_series(1, $1::int) as n`
	loadDetail = `
		insert into archives (conversation_id, client_archive_id, client_conversation_id, creator_session_id, client_app_id, route_key,
			membership_version, member_count, state, confirmed_count, last_sequence, message_count, turn_count, last_turn_status,
			text_bytes, created_at, updated_at)
		values ($1, $1, 'detail', $1, 'listed', 'orders', 1, 1, 'ready', 1, $2, $2, 1, 'running', $2 * octet_length($3), now(), now())`
	loadMember = `insert into archive_members (conversation_id, session_id, display_label) values ($1, $1, 'member')`
	loadTexts  = `
		insert into archive_events (conversation_id, sequence, event_id, client_turn_id, kind, content, created_at)
		select $1, n, 'event-' || n, 'turn-1', 'user_message', $3, now() from generate_series(1, $2::int) as n`

	rawList = `
		select conversation_id, client_archive_id, client_conversation_id, client_app_id, route_key, state, member_count,
			confirmed_count, last_sequence, message_count, turn_count, last_turn_status, created_at, updated_at
		from archives order by updated_at desc, conversation_id desc limit $1 offset $2`
	rawDetail = `
		select event_id, sequence, client_turn_id, kind, content, status, run_id, member_session_id, created_at
		from archive_events where conversation_id = $1 and sequence > 0 order by sequence limit $2`
)

// read is one page of the admin API and the same rows by hand.
type read struct {
	name string
	path string
	raw  func(ctx context.Context, conn *pgx.Conn) error

	api, byHand []time.Duration // of the round
}

// readRow is a page's time by that of its raw query and JSON encoding.
type readRow struct {
	Page   string          `json:"page"`
	API    spread[millis]  `json:"api_p50_ms"`
	ByHand spread[millis]  `json:"by_hand_p50_ms"`
	Ratio  spread[float64] `json:"ratio"`
}

// reads measures pages of archives beside the raw query and the encoding of its rows.
func (b *bench) reads(ctx context.Context, archives int) ([]readRow, error) {
	b.say("%d archives are stored", archives)
	if err := b.loadArchives(ctx, archives); err != nil {
		return nil, err
	}
	admin, err := dial(ctx, b.both.auditviewURL, adminToken)
	if err != nil {
		return nil, fmt.Errorf("connect to auditview: %w", err)
	}
	defer admin.close()
	pages := []*read{
		{
			name: fmt.Sprintf("detail of %d events", detailEvents), path: fmt.Sprintf("%s/%s?limit=%d", adminArchivesPath, detailID, detailEvents),
			raw: encode[rawEvent](rawDetail, detailID, detailEvents),
		},
		{
			name: fmt.Sprintf("list of %d, first", archives), path: fmt.Sprintf("%s?limit=%d", adminArchivesPath, listLimit),
			raw: encode[rawArchive](rawList, listLimit, 0),
		},
		{
			name: fmt.Sprintf("list of %d, at %d", archives, listOffset), path: fmt.Sprintf("%s?limit=%d&offset=%d", adminArchivesPath, listLimit, listOffset),
			raw: encode[rawArchive](rawList, listLimit, listOffset),
		},
	}
	rows := make([]readRow, len(pages))
	err = withConn(ctx, b.server.auditview, func(conn *pgx.Conn) error {
		for i, p := range pages {
			var api, byHand []millis
			var ratios []float64
			for n := range b.options.rounds {
				b.say("%s, round %d of %d", p.name, n+1, b.options.rounds)
				if err := p.round(ctx, admin, conn, b.options.warmup, b.options.duration); err != nil {
					return fmt.Errorf("%s: %w", p.name, err)
				}
				a, h := percentile(p.api, 50), percentile(p.byHand, 50)
				api, byHand, ratios = append(api, millis(a)), append(byHand, millis(h)), append(ratios, float64(a)/float64(max(h, 1)))
			}
			rows[i] = readRow{p.name, spreadOf(api), spreadOf(byHand), spreadOf(ratios)}
		}
		return nil
	})
	return rows, err
}

func (b *bench) loadArchives(ctx context.Context, archives int) error {
	return withConn(ctx, b.server.auditviewOwner, func(conn *pgx.Conn) error {
		batch := &pgx.Batch{}
		batch.Queue(`delete from archives where client_app_id = 'listed'`)
		batch.Queue(`delete from archive_members where conversation_id = $1`, detailID)
		batch.Queue(`delete from archive_events where conversation_id = $1`, detailID)
		batch.Queue(loadArchives, archives)
		batch.Queue(loadDetail, detailID, detailEvents, text)
		batch.Queue(loadMember, detailID)
		batch.Queue(loadTexts, detailID, detailEvents, text)
		if err := conn.SendBatch(ctx, batch).Close(); err != nil {
			return fmt.Errorf("load archives: %w", err)
		}
		_, err := conn.Exec(ctx, `vacuum (analyze) archives, archive_members, archive_events`)
		return err
	})
}

// round reads the page both ways in turns, so that nothing that happens is only one's.
func (p *read) round(ctx context.Context, admin *keptAlive, conn *pgx.Conn, warmup, duration time.Duration) error {
	p.api, p.byHand = nil, nil
	begin := time.Now().Add(warmup)
	for end := begin.Add(duration); len(p.api) == 0 || time.Now().Before(end); {
		started := time.Now()
		if err := admin.exchange(http.MethodGet, p.path, nil); err != nil {
			return err
		}
		between := time.Now()
		if err := p.raw(ctx, conn); err != nil {
			return err
		}
		if started.After(begin) {
			p.api, p.byHand = append(p.api, between.Sub(started)), append(p.byHand, time.Since(between))
		}
	}
	slices.Sort(p.api)
	slices.Sort(p.byHand)
	return nil
}

// rawEvent and rawArchive are rows as they are, to be encoded.
type (
	rawEvent struct {
		EventID         string    `json:"event_id"`
		Sequence        int       `json:"sequence"`
		ClientTurnID    string    `json:"client_turn_id"`
		Kind            string    `json:"kind"`
		Content         *string   `json:"content"`
		Status          *string   `json:"status"`
		RunID           *string   `json:"run_id"`
		MemberSessionID *string   `json:"member_session_id"`
		CreatedAt       time.Time `json:"created_at"`
	}
	rawArchive struct {
		ConversationID       string    `json:"conversation_id"`
		ClientArchiveID      string    `json:"client_archive_id"`
		ClientConversationID string    `json:"client_conversation_id"`
		ClientAppID          string    `json:"client_app_id"`
		RouteKey             string    `json:"route_key"`
		State                string    `json:"state"`
		MemberCount          int       `json:"member_count"`
		ConfirmedCount       int       `json:"confirmed_count"`
		LastSequence         int       `json:"last_sequence"`
		MessageCount         int       `json:"message_count"`
		TurnCount            int       `json:"turn_count"`
		LastTurnStatus       *string   `json:"last_turn_status"`
		CreatedAt            time.Time `json:"created_at"`
		UpdatedAt            time.Time `json:"updated_at"`
	}
)

// encode returns what runs a query and encodes its rows.
func encode[T any](query string, args ...any) func(context.Context, *pgx.Conn) error {
	return func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, query, args...)
		if err != nil {
			return err
		}
		all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[T])
		if err != nil {
			return err
		}
		_, err = json.Marshal(all)
		return err
	}
}
