// Package database opens PostgreSQL for a service, sorts its errors into what a
// caller can do about them, and creates the roles and databases of a cluster.
//
// # Roles
//
// Each service has three roles: an owner that only migrations use, the service's own
// role, and a role that reads. Roles belong to the whole cluster, so [Bootstrap] makes
// them once and no numbered migration does; migrations grant table rights to the fixed
// names in [Ingest] and [Auditview]. That the service's role cannot change what it
// has written rests on those grants, hence Bootstrap refuses roles that would stand
// above them.
//
// # What is never printed
//
// No error, log line or span of this package holds a data source name, a password or a
// query's parameters. Server messages can quote parameters ("invalid input syntax …"),
// so spans and log lines get the SQLSTATE in their place.
package database
