// Package client writes the conversations of an agent to a Verbatim hub, and loses
// none of them: what [Archive.Append] has accepted is on the local disk, and stays
// there until the hub has acknowledged it.
//
// # Parts
//
// A [Hub] is the service's address. A [Spool] is one file that holds all that must
// survive a crash: sessions with their tokens, archives, events. [Spool.Authorize]
// gets a session through the person's browser; [Spool.AddSession] takes one that an
// operator issued. With a [Session] an agent opens runs ([Session.OpenTurn],
// [Session.Complete], [Session.RecordTrace]). An [Archive] is one conversation:
// [Spool.OpenArchive] names its members, [Archive.Append] writes to the disk,
// [Archive.Sync] or [Spool.Run] to the hub.
//
// # What holds after a crash
//
// Every step is on disk before the next one is taken:
//
//   - The archive's UUID is drawn, and the request that creates it is stored, before
//     the first request; a repeated creation is byte for byte the same.
//   - An event gets its id and its sequence when it is stored, and never another one.
//   - The bounds of a batch are stored before it is sent. A batch whose answer was
//     lost is sent again unchanged, before anything new.
//   - The acknowledged sequence is what the hub's answer said, never a guess.
//   - A new pair of tokens is stored before it is used. That a rotation has begun is
//     stored before the refresh token is sent, so that a lost answer is noticed: the
//     rotation is repeated while the hub allows it (10 seconds), and later only when
//     nothing else is left, because the hub revokes a session whose used token returns.
//
// # What is refused
//
// Append checks what the hub would check and can be checked here: texts,
// identifiers, turns, limits. What breaks a rule is an error and nothing of it is
// stored; nothing is ever cut, dropped or rewritten. What the hub refuses for good
// is kept with its code ([State] Refused, [RefusedError]) and shown until somebody
// calls [Archive.Resume]. A hub without archives is Unsupported: the events wait.
//
// # The file
//
// The spool is a bbolt database: one file, readable to its owner only, that is
// fsynced at every commit, survives a crash at any byte, and holds a file lock
// that keeps a second process out. The library is maintained by the etcd project
// and has no dependencies but golang.org/x/sys. The file holds tokens and the text
// of conversations in the clear; what is removed may stay in its free pages.
//
// The package logs nothing. Errors hold no text and no token; [Token] prints as
// [redacted].
package client
