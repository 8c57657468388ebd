package database_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/platform/database"
)

func TestDSNDerivesBothForms(t *testing.T) {
	t.Parallel()
	for _, admin := range []string{
		"postgres://root:pw@db.example:5433/postgres?sslmode=disable&connect_timeout=3",
		"postgresql://db.example:5433/?user=root&password=pw&sslmode=disable&dbname=x",
		"postgres://root:pw@/postgres?host=db.example&port=5433&sslmode=disable",
		"host=db.example port=5433 user=root password='p w' dbname=postgres sslmode=disable",
	} {
		for _, password := range []string{"plain", `sp ace'quote\back"dq`, "p@ss:/?#[]%20&=", "ü€"} {
			derived, err := database.DSN(admin, `we"ird user`, password, "my db/%")
			require.NoError(t, err, admin)
			cfg, err := pgx.ParseConfig(derived)
			require.NoError(t, err)
			require.Equal(t, `we"ird user`, cfg.User)
			require.Equal(t, password, cfg.Password)
			require.Equal(t, "my db/%", cfg.Database)
			require.Equal(t, "db.example", cfg.Host)
			require.Equal(t, uint16(5433), cfg.Port)
			require.Nil(t, cfg.TLSConfig)
		}
	}
}

func TestDSNKeepsTheDatabase(t *testing.T) {
	t.Parallel()
	derived, err := database.DSN("postgres://root@db.example/kept", "u", "p", "")
	require.NoError(t, err)
	require.Equal(t, "postgres://u:p@db.example/kept", derived)
}

func TestDSNErrorsHoldNothing(t *testing.T) {
	t.Parallel()
	for _, malformed := range []string{"postgres://u:geheim@[::1/db", "postgres://u:geheim@h:port/db", "geheim", "host='geheim"} {
		_, err := database.DSN(malformed, "u", "p", "d")
		require.Equal(t, database.ErrMalformedDSN, err)
		_, err = database.Open(t.Context(), database.Config{DSN: "postgres://u:geheim@h:port/db"})
		require.Equal(t, database.ErrMalformedDSN, err)
	}
	_, err := database.DSN("postgres://h/d", "", "p", "d")
	require.Equal(t, database.ErrMalformedDSN, err)
}
