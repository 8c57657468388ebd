// Package openapi holds the OpenAPI 3.1 documents of both services, as they are
// served at /openapi.yaml of each listener. The integration tests hold every answer of the
// services against them.
package openapi

import _ "embed"

// Ingest describes what agents call.
//
//go:embed ingest.yaml
var Ingest []byte

// Auditview describes what administrators call.
//
//go:embed auditview.yaml
var Auditview []byte

// Control describes what the operator's own systems call to keep ingest's registry.
//
//go:embed control.yaml
var Control []byte
