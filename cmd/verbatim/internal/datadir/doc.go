// Package datadir owns the directory of `verbatim up`: which one it is, that one
// process at a time uses it, and the files in it that only its owner may read.
//
//	lock              held by the running process, for its whole life
//	passwords.json    of the database roles, made once, 0600
//	connections.json  of the running process, for the commands beside it, 0600
//	postgres/         the embedded server's own
//
// Files are written beside their place, synced and renamed, so that a crash
// leaves the old one or the new one. A connections file that a killed process
// left is recognized by its lock, which the kernel released.
package datadir
