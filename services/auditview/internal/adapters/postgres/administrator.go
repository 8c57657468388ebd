package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"verbatim.internal/services/auditview/internal/app"
)

// Administrator implements app.AdministratorStore.
func (s *Store) Administrator(ctx context.Context, token app.TokenHash) (app.Administrator, bool, error) {
	var a app.Administrator
	err := s.db.Pool.QueryRow(ctx, `
select a.name, a.permissions
from administrator_tokens t
join administrators a on a.name = t.administrator
where t.token_hash = $1`, token[:]).Scan(&a.Name, &a.Permissions)
	if errors.Is(err, pgx.ErrNoRows) {
		return app.Administrator{}, false, nil
	}
	return a, err == nil, readError(err)
}

// administratorsLock makes changes of administrators wait for each other.
const administratorsLock int64 = 0x766274_61646d69 // "vbt" "admi"

// ChangeAdministrators implements app.AdministratorStore.
func (s *Store) ChangeAdministrators(ctx context.Context, fn func(tx app.AdministratorTx) error) error {
	err := pgx.BeginFunc(ctx, s.db.Pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock($1)`, administratorsLock); err != nil {
			return err
		}
		return fn(administratorTx{tx})
	})
	return readError(err)
}

type administratorTx struct{ tx pgx.Tx }

// Get implements app.AdministratorTx.
func (t administratorTx) Get(ctx context.Context, name string) (app.Administrator, []app.TokenHash, bool, error) {
	a := app.Administrator{Name: name}
	var hashes [][]byte
	err := t.tx.QueryRow(ctx, `
select permissions, array(select token_hash from administrator_tokens where administrator = name order by token_hash)
from administrators
where name = $1`, name).Scan(&a.Permissions, &hashes)
	if errors.Is(err, pgx.ErrNoRows) {
		return app.Administrator{}, nil, false, nil
	}
	if err != nil {
		return app.Administrator{}, nil, false, err
	}
	tokens := make([]app.TokenHash, len(hashes))
	for i, h := range hashes {
		copy(tokens[i][:], h)
	}
	return a, tokens, true, nil
}

// Put implements app.AdministratorTx.
func (t administratorTx) Put(ctx context.Context, a app.Administrator, now time.Time) error {
	permissions := a.Permissions
	if permissions == nil {
		permissions = []string{}
	}
	_, err := t.tx.Exec(ctx, `
insert into administrators (name, permissions, created_at, updated_at)
values ($1, $2, $3, $3)
on conflict (name) do update set permissions = excluded.permissions, updated_at = excluded.updated_at`,
		a.Name, permissions, now)
	return err
}

// SetToken implements app.AdministratorTx.
func (t administratorTx) SetToken(ctx context.Context, name string, token app.TokenHash, now time.Time) (bool, error) {
	if _, err := t.tx.Exec(ctx, `delete from administrator_tokens where administrator = $1`, name); err != nil {
		return false, err
	}
	tag, err := t.tx.Exec(ctx, `
insert into administrator_tokens (token_hash, administrator, created_at)
values ($1, $2, $3)
on conflict (token_hash) do nothing`, token[:], name, now)
	return err == nil && tag.RowsAffected() == 1, err
}
