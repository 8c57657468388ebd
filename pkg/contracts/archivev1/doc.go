// Package archivev1 holds the messages about a conversation archive, version 1:
// created, member confirmed, events appended, and the snapshot that replaces a
// whole stream. Their stream kind is "archive", their stream id the conversation id.
//
// A message carries what the read model shows and nothing else: no identity hash,
// no enrolment hash, no token. Marshal and Unmarshal both validate. Errors name
// fields and rules, never values: values may be a conversation's text.
package archivev1
