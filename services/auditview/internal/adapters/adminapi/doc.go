// Package adminapi serves administrators over HTTP (archive-protocol.md, "Admin read
// API"), and health, readiness and the API's description to everybody.
//
// Every answer has Cache-Control: no-store. An error's text never quotes a request.
package adminapi
