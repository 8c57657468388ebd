// Package postgres keeps the read model and the administrators in PostgreSQL.
//
// The projection pipelines explicit statements over the pool of pgx; reads go through
// gorm over the same pool. Errors that leave this package show SQL states and
// constraints, never values.
package postgres
