module verbatim.internal/pkg/contracts

go 1.26.0

require (
	github.com/getkin/kin-openapi v0.153.0
	github.com/go-json-experiment/json v1.27.2
	github.com/stretchr/testify v1.12.1
	verbatim.internal/pkg/domain v0.0.0
)

require (
	github.com/go-openapi/jsonpointer v1.0.0 // indirect
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3 // indirect
	go.yaml.in/yaml/v3 v3.0.6 // indirect
	go.yaml.in/yaml/v4 v4.0.0 // indirect
	golang.org/x/text v0.44.0 // indirect
)

replace verbatim.internal/pkg/domain => ../domain
