// Package app holds ingest's use cases and the ports they need. It knows the
// domain and the contracts, no framework and no database.
//
// A use case that writes runs in one [UnitOfWork]: it loads facts under locks,
// asks the domain, and queues what to store; commit writes it all. When Do
// returns nil the change and its outbox message are durable; on any error
// neither exists, except when the connection is lost during the commit itself,
// where either may be true: every use case is therefore safe to repeat.
package app
