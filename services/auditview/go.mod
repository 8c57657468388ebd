module verbatim.internal/services/auditview

go 1.26.0

replace (
	verbatim.internal/pkg/contracts => ../../pkg/contracts
	verbatim.internal/pkg/domain => ../../pkg/domain
	verbatim.internal/pkg/platform => ../../pkg/platform
	verbatim.internal/sql => ../../sql
)

require (
	github.com/go-json-experiment/json v1.27.2
	github.com/jackc/pgx/v5 v5.12.0
	gorm.io/gorm v1.31.2
	sigs.k8s.io/yaml v1.6.0
	verbatim.internal/pkg/contracts v0.0.0-00010101000000-000000000000
	verbatim.internal/pkg/platform v0.0.0-00010101000000-000000000000
)

require (
	github.com/caarlos0/env/v11 v11.4.2 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/exaring/otelpgx v0.13.0 // indirect
	github.com/go-logr/logr v1.4.4 // indirect
	github.com/go-logr/stdr v1.2.2 // indirect
	github.com/jackc/pgpassfile v1.0.0 // indirect
	github.com/jackc/pgservicefile v0.0.0-20240606120523-5a60cdf6a761 // indirect
	github.com/jackc/puddle/v2 v2.2.3 // indirect
	github.com/jinzhu/inflection v1.0.0 // indirect
	github.com/jinzhu/now v1.1.5 // indirect
	github.com/kr/text v0.2.0 // indirect
	github.com/rogpeppe/go-internal v1.16.0 // indirect
	go.opentelemetry.io/auto/sdk v1.2.1 // indirect
	go.opentelemetry.io/otel v1.47.0 // indirect
	go.opentelemetry.io/otel/log v1.47.0 // indirect
	go.opentelemetry.io/otel/metric v1.47.0 // indirect
	go.opentelemetry.io/otel/trace v1.47.0 // indirect
	go.yaml.in/yaml/v2 v2.4.2 // indirect
	golang.org/x/sync v0.25.0 // indirect
	golang.org/x/text v0.44.0 // indirect
	gorm.io/driver/postgres v1.6.3 // indirect
)
