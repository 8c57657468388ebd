// Package kit runs both services in a test: on fresh databases of one shared
// PostgreSQL server, over real HTTP, with a client that holds every exchange
// against the OpenAPI documents.
//
// A test starts with [Start], speaks through [Deployment.Ingest], [Deployment.Control]
// and [Deployment.Auditview], and waits with [Eventually]; nothing sleeps and nothing
// skips. Where there is no Docker, Start fails the test and says what to do.
package kit
