package outbox

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/platform/database"
	"verbatim.internal/pkg/platform/pgtest"
	"verbatim.internal/sql"
)

// A page of streams comes from their key, in its order, and costs the same among millions.
func TestPagesOfStreamsComeFromTheirKeys(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, database.Ingest, sql.FS, 0)
	pool, err := pgxpool.New(t.Context(), db.ServiceDSN)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	kinds, err := storedKinds(t.Context(), pool)
	require.NoError(t, err)
	require.Len(t, kinds, 4)
	for _, k := range kinds {
		var plan string
		require.NoError(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			// The tables are empty: an order that their key gives needs no sort.
			if _, err := tx.Exec(t.Context(), `set local enable_seqscan = off; set local enable_bitmapscan = off`); err != nil {
				return err
			}
			rows, err := tx.Query(t.Context(), "explain "+k.query(streamsAfter), nilUUID, rebuildPage)
			if err != nil {
				return err
			}
			lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
			plan = strings.Join(lines, "\n")
			return err
		}))
		require.Contains(t, plan, " using "+k.table+"_pkey", k.name)
		require.NotContains(t, plan, "Sort", k.name)
	}
}
