package postgres_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/domain/archive"
	"verbatim.internal/pkg/platform/database"
	"verbatim.internal/pkg/platform/pgtest"
	"verbatim.internal/services/ingest/internal/adapters/postgres"
	"verbatim.internal/services/ingest/internal/adapters/system"
	"verbatim.internal/services/ingest/internal/app"
	"verbatim.internal/sql"
)

// trips counts what a pool sends: a batch is one round trip.
type trips struct{ n atomic.Int64 }

func (c *trips) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	c.n.Add(1)
	return ctx
}

func (*trips) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (c *trips) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	c.n.Add(1)
	return ctx
}

func (*trips) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

func (*trips) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// An append that nothing speaks against is one round trip, and no other statement, once
// the service has appended to the archive before; without migration 063 it is as it was.
func TestARecalledAppendIsOneRoundTrip(t *testing.T) {
	t.Parallel()
	const session = "123e4567-e89b-42d3-a456-426614174001"
	for version, want := range map[int64]int64{62: 0, 0: 1} {
		t.Run(fmt.Sprintf("migrated to %d", version), func(t *testing.T) {
			t.Parallel()
			dsn := pgtest.New(t, database.Ingest, sql.FS, version)
			cfg, err := pgxpool.ParseConfig(dsn.ServiceDSN)
			require.NoError(t, err)
			counter := &trips{}
			cfg.ConnConfig.Tracer = counter
			pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
			require.NoError(t, err)
			t.Cleanup(pool.Close)
			token := "bha_" + "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
			hash := sha256.Sum256([]byte(token))
			for _, statement := range []string{
				`insert into bz_clients values ('shop', 'Shop', null, '{orders}', true, now(), now())`,
				`insert into bz_routes (route_key, name, enabled, agent_access, created_at, updated_at) values ('orders', 'Orders', true, true, now(), now())`,
				`insert into bz_agent_sessions values ('` + session + `', 'shop', 'd', '{"id":"op"}', 'a:op', '{orders}', '2099-01-01', null, now(), now())`,
				fmt.Sprintf(`insert into bz_agent_session_tokens values ('\x%x', '%s', '2099-01-01', now())`, hash, session),
			} {
				_, err := pool.Exec(t.Context(), statement)
				require.NoError(t, err)
			}
			schema := postgres.NewSchema(pool, &stopped{time.Now()}) // asked once
			uow := postgres.NewUnitOfWork(pool, schema, asleep{})
			archives := app.NewArchives(uow, uow, schema, system.Clock{}, system.IDs{})
			bearers := app.NewAuthenticator(postgres.NewSessions(pool), system.Clock{})
			bearer, err := bearers.Authenticate(t.Context(), token)
			require.NoError(t, err)
			creation, err := archive.NewCreationV1(archive.FieldsV1{
				ClientArchiveID: "323e4567-e89b-42d3-a456-426614174001", ClientConversationID: "c", Route: "orders", MemberSessionIDs: []string{session},
			})
			require.NoError(t, err)
			a, err := archives.Create(t.Context(), bearer, creation)
			require.NoError(t, err)
			_, err = archives.Append(t.Context(), bearer, a.ConversationID, batchOf(t, 1, archive.TurnStart))
			require.NoError(t, err)

			recalled, ok := bearers.Recall(token)
			require.True(t, ok)
			require.Equal(t, bearer, recalled.Bearer)
			for sequence := 2; sequence < 5; sequence++ {
				before := counter.n.Load()
				last, done, err := archives.AppendRecalled(t.Context(), recalled, a.ConversationID, batchOf(t, sequence, archive.UserMessage))
				require.NoError(t, err)
				require.Equal(t, want == 1, done)
				require.Equal(t, want, counter.n.Load()-before)
				if done {
					require.Equal(t, sequence, last)
				}
			}
		})
	}
}

func batchOf(t *testing.T, sequence int, kind archive.Kind) []archive.Event {
	t.Helper()
	fields := archive.Fields{EventID: fmt.Sprintf("e%d", sequence), Sequence: int64(sequence), ClientTurnID: "t", Kind: string(kind)}
	if kind == archive.UserMessage {
		text := "words"
		fields.Content = &text
	}
	events, err := archive.NewBatch([]archive.Fields{fields})
	require.NoError(t, err)
	return events
}
