package integration_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"verbatim.internal/test/integration/internal/kit"
)

// sample is a text that must not be kept, and the part of it by which it is recognised
// wherever it is: lower case, and nothing that JSON escapes.
type sample struct {
	text, mark string
}

func sampled(text, mark string) sample { return sample{text, strings.ToLower(mark)} }

// What looks like a secret is put together here, so that no tool takes this file for a
// leak; nothing in it was ever valid.
const (
	base64url = "Zk3vQ9-xT_2mLw8Rb5Yc7Nd1Hf4Jg6Ks0PqAuEiOtVe" // 43
	letters   = "Zk3vQ9xT2mLw8Rb5Yc7Nd1Hf4Jg6Ks0PqAuEiOtV"    // 40
	hexadec   = "9f86d081884c7d659a2feaa0c55ad015"
)

// secretSamples are secrets of which nothing may be kept anywhere.
func secretSamples() []sample {
	jwt := "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0." + "dozjgNryP4J3jVmNHl0w5N"
	azure := strings.Repeat("aB3+cD4/eF", 8) + "aB3+cD" + "=="
	whole := func(secret string) sample { return sampled(secret, secret) }
	return []sample{
		whole("bha_" + base64url), whole("bhk_" + strings.ToLower(base64url)), whole("ghp_" + letters[:36]), whole("xoxb-" + "123456789012-" + letters[:24]),
		whole("sk_live_" + letters[:24]), whole("sk-ant-api03-" + base64url + base64url), whole("AKIA" + "Y34FZKBO" + "KMUTVV7A"),
		whole("AIza" + "SyA-" + base64url[:31]), whole("hvs." + base64url), whole("npm_" + letters[:36]), whole(jwt), whole("glpat-" + base64url[:20]),
		whole(azure), whole("dop_v1_" + hexadec + hexadec),
		sampled("-----BEGIN "+"PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END "+"PRIVATE KEY-----", "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"),
		sampled("postgres://ada:"+"correcthorse77@db.internal/orders", "correcthorse77"),
		sampled("Authorization: Bearer "+"mF_9.B5f-4.1JqMzz", "mF_9.B5f-4.1JqMzz"),
		sampled("password="+"swordfish-of-ada", "swordfish-of-ada"),
		sampled(`{"client_secret":"`+letters[5:30]+`"}`, letters[5:30]),
	}
}

// proseSamples are what people and models say and write.
func proseSamples() []sample {
	return []sample{
		sampled("Refund the unhappy customer in Lindau, and apologise.", "unhappy customer in Lindau"),
		sampled("func refund(o Order) error {\n\treturn ledger.Credit(o.Total)\n}", "ledger.Credit(o.Total)"),
		sampled("User: where is my parcel?\nAssistant: it waits at the depot.", "it waits at the depot"),
		sampled("请把订单退款，并向客户道歉。", "并向客户道歉"),
		sampled("<p>Dear Ms Käufer, your claim was settled.</p>", "your claim was settled"),
		sampled("SELECT name, iban FROM customers WHERE id = 7", "iban FROM customers"),
	}
}

// findings searches every column of every table for marks, in text and in bytes, and
// returns what is found where: "table: mark".
func findings(t *testing.T, dsn string, samples []sample) (found []string) {
	t.Helper()
	conn := kit.Connect(t, dsn)
	rows, err := conn.Query(t.Context(), `select table_name::text from information_schema.tables where table_schema = 'public' order by 1`)
	require.NoError(t, err)
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Greater(t, len(tables), 5)
	var marks []string
	for _, s := range samples {
		marks = append(marks, s.mark)
	}
	slices.Sort(marks)
	for _, table := range tables {
		rows, err := conn.Query(t.Context(), `select mark from unnest($1::text[]) mark where exists (select from `+table+` x
			where strpos(lower(x::text), mark) > 0 or strpos(lower(x::text), encode(convert_to(mark, 'UTF8'), 'hex')) > 0)`, marks)
		require.NoError(t, err)
		marks, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		for _, mark := range marks {
			found = append(found, fmt.Sprintf("%s: %s", table, mark))
		}
	}
	return found
}
