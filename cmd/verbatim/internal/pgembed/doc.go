// Package pgembed runs the system's own PostgreSQL as a child of this process,
// for a start that needs no Docker and no database administrator.
//
// # What is on disk
//
// Config.Dir belongs to the server's account and holds the cluster in data.
// initdb works in a directory of another name, which is renamed once it is
// complete and synced: an initdb that was killed leaves nothing that a later
// start takes for a cluster.
//
// # Life and death
//
// The caller holds a lock on the directory for as long as the server runs, so
// that a server found there is an orphan. On Linux the kernel stops the server
// when this process dies, however it dies. What an orphan acknowledged is in
// the write-ahead log: the next start waits until the orphan is gone, and
// PostgreSQL then recovers by itself.
//
// PostgreSQL refuses to run as root. When this process is root the server runs
// as another account, without root's supplementary groups and without this
// process's environment.
package pgembed
