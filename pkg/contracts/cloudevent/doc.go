// Package cloudevent holds the envelope in which ingest tells auditview what was
// committed: CloudEvents 1.0 attributes in the JSON batch format.
//
// Every event belongs to a stream (an archive, a run, a change of the registry). A
// stream's versions count 1, 2, 3 … in the order of its commits; between streams order
// means nothing. A snapshot replaces a whole stream and may come in several parts,
// numbered from 1, that share one version.
//
// EncodeBatch and DecodeBatch both validate, so an envelope that breaks a rule
// leaves no process and enters none. The data of an event is kept as the bytes
// that it has: its rules belong to its type (packages archivev1, runv1 and registryv1).
package cloudevent
