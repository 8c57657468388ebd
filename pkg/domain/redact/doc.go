// Package redact tells secrets from metadata: Verbatim keeps metadata about what agents
// did, and a secret value must not get in with it.
//
// A scan goes over a text once, from left to right, and marks what has the form of a
// secret: tokens by their issuer's prefix, private keys, JSON Web Tokens, credentials of
// an HTTP header or a URL, and values that a text itself assigns to a password, a token
// or a key. What only names something stays: identifiers, UUIDs, digests, paths, models,
// versions, addresses, prose in any script, and references azkv://vault/name.
//
// In doubt a value that is assigned to a password goes, and a word of prose stays. No
// scan sees everything: a password in a sentence without a sign of assignment is prose.
//
// Cost. Every function takes time linear in its input's length, on hostile input too:
// what is looked at without being replaced is bounded by a constant per position, or is
// scanned at most once per kind of secret. Nothing is kept between calls; all functions
// are safe for concurrent use.
package redact
