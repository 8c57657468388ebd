package database

import (
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"
)

// DSN derives a data source name from adminDSN: the same server and options, another
// user, password and database. An empty database keeps adminDSN's. It takes URLs and
// keyword/value strings and returns the same form. The error is [ErrMalformedDSN].
func DSN(adminDSN, user, password, database string) (string, error) {
	if _, err := pgx.ParseConfig(adminDSN); err != nil || user == "" {
		return "", ErrMalformedDSN
	}
	var derived string
	if strings.HasPrefix(adminDSN, "postgres://") || strings.HasPrefix(adminDSN, "postgresql://") {
		u, err := url.Parse(adminDSN)
		if err != nil {
			return "", ErrMalformedDSN
		}
		u.User = url.UserPassword(user, password)
		// Query parameters would win over the parts that are set here.
		query := u.Query()
		for _, key := range []string{"user", "password", "passfile"} {
			query.Del(key)
		}
		if database != "" {
			query.Del("dbname")
			query.Del("database")
			u.Path, u.RawPath = "/"+database, ""
		}
		u.RawQuery = query.Encode()
		derived = u.String()
	} else {
		// The last one of a repeated keyword counts.
		derived = adminDSN + " user=" + quoteValue(user) + " password=" + quoteValue(password)
		if database != "" {
			derived += " dbname=" + quoteValue(database)
		}
	}
	cfg, err := pgx.ParseConfig(derived)
	if err != nil || cfg.User != user || cfg.Password != password || database != "" && cfg.Database != database {
		return "", ErrMalformedDSN
	}
	return derived, nil
}

// quoteValue quotes a value of a keyword/value string.
func quoteValue(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
}
