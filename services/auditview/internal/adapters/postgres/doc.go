// Package postgres keeps the read model and the administrators in PostgreSQL.
//
// The projection, parked messages and the administrators' file use explicit statements
// over pgx; what administrators list and read goes through gorm over the same pool. Errors that leave this package show SQL states and
// constraints, never values.
package postgres
