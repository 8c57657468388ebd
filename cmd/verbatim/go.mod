module verbatim.internal/cmd/verbatim

go 1.26.0

require (
	github.com/go-json-experiment/json v1.27.2
	github.com/google/uuid v1.6.0
	github.com/jackc/pgx/v5 v5.12.0
	github.com/stretchr/testify v1.12.1
	verbatim.internal/pkg/contracts v0.0.0-00010101000000-000000000000
)

require (
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/text v0.41.0 // indirect
)

replace (
	verbatim.internal/pkg/contracts => ../../pkg/contracts
	verbatim.internal/pkg/domain => ../../pkg/domain
	verbatim.internal/pkg/platform => ../../pkg/platform
	verbatim.internal/services/auditview => ../../services/auditview
	verbatim.internal/services/ingest => ../../services/ingest
	verbatim.internal/sql => ../../sql
)
