// Package authorization holds the rules of Agent Auth v1: how an agent on a person's
// machine gets a session of its own (a loopback redirect with PKCE S256), and how that
// session's tokens are renewed.
//
// # State model
//
// An agent asks ([Request]) and an [Authorization] is Pending for [AskLife]. The client's
// backend shows it to the person and decides once: [Authorization.Deny] makes it Denied,
// for good; [Authorization.Approve] makes it Approved for [CodeLife], in which the agent
// may exchange the code ([Authorization.Exchange]); that makes it Consumed, for good. An
// authorization that is not decided, or whose code is not exchanged, in time is Expired.
//
//	Pending ── Approve ──▶ Approved ── Exchange ──▶ Consumed
//	   │  └─── Deny ────▶ Denied     └─ CodeLife ──▶ Expired
//	   └────── AskLife ─────────────────────────────▶ Expired
//
// A refresh token is used once and then names its successor. [Judge] says what the
// return of a used one means: a lost answer, which is given anew in the successor's
// place, or a stolen token, which ends the session.
//
// # Purity
//
// Nothing here does I/O, reads a clock or draws a secret. A caller reads the state under
// its lock, asks the rules, and stores the outcome in the same transaction; a refused
// request leaves the given state untouched. Every refusal is a [*refusal.Error].
package authorization
