// Package integration holds the tests that run both services together: real
// PostgreSQL, real HTTP, both transports.
package integration
