// Package app holds auditview's use cases and the ports that they need: projecting
// ingest's messages, reading for administrators, applying administrators, and showing
// and replaying what is parked.
package app
