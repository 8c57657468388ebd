module verbatim.internal/cmd/verbatim

go 1.26.0

require (
	github.com/jackc/pgx/v5 v5.12.0
	github.com/spf13/cobra v1.10.2
	github.com/stretchr/testify v1.12.1
)
