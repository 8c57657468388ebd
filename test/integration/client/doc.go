// Package client holds the tests of the public client library against both services: it
// is authorized, opens runs and archives conversations over real HTTP, and is killed at
// each of its requests.
package client
