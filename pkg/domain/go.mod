module verbatim.internal/pkg/domain

go 1.26.0

require (
	github.com/go-json-experiment/json v1.27.2
	pgregory.net/rapid v1.2.0
)
