// Package auditview embeds the read model's numbered migrations. They are applied by
// command only, never by starting a service; hosts may also apply the files with psql.
package auditview

import "embed"

// FS holds the migrations, NNN_name.sql, in the order of their numbers.
//
//go:embed *.sql
var FS embed.FS
