package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"

	"verbatim.internal/pkg/domain/refusal"
	"verbatim.internal/pkg/platform/database"
	"verbatim.internal/pkg/platform/telemetry"
	"verbatim.internal/services/ingest/internal/app"
)

// Registry implements [app.RegistryStore] with gorm.
type Registry struct {
	db    *gorm.DB
	waker Waker
}

// NewRegistry returns the registry of the database. waker may be that of another
// process's relay only through its safety net; nil means nobody is woken here.
func NewRegistry(db *gorm.DB, waker Waker) *Registry { return &Registry{db: db, waker: waker} }

// Change implements [app.RegistryStore].
func (s *Registry) Change(ctx context.Context, o app.Occasion, fn func(tx app.RegistryTx) error) (app.RegistryResult, error) {
	var a *application
	err := database.RetrySerialization(ctx, func() error {
		return s.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
			a = &application{tx: tx, Occasion: o, trace: notEmpty(telemetry.InjectTrace(ctx))}
			if err := a.begin(); err != nil {
				return err
			}
			return fn(a)
		})
	})
	if err != nil {
		return app.RegistryResult{}, err
	}
	if s.waker != nil {
		for _, p := range a.partitions {
			s.waker.Wake(p)
		}
	}
	return a.result, nil
}

// application implements [app.RegistryTx]: one transaction that changes the registry.
type application struct {
	app.Occasion

	tx         *gorm.DB
	trace      *string
	partitions []int
	result     app.RegistryResult

	records bool // migration 059 is there: changes are recorded, routes have instructions
	threads bool // migration 061 is there: runs have threads
}

// schemaOfRegistry asks the catalog what later migrations added.
const schemaOfRegistry = `select to_regclass('bz_registry_changes') is not null, to_regclass('bz_agent_threads') is not null`

func (a *application) begin() error {
	// Changes wait for each other: each must see what the one before did, and their
	// records are numbered in commit order.
	if err := a.tx.Exec(lockKey, "registry", "apply").Error; err != nil {
		return err
	}
	if err := a.tx.Raw(schemaOfRegistry).Row().Scan(&a.records, &a.threads); err != nil {
		return err
	}
	return a.authorize()
}

// authorize asks again whether a controller may: it was asked outside the transaction.
func (a *application) authorize() error {
	if a.Token == nil {
		return nil
	}
	controller, ok, err := controllerByToken(a.tx, a.Token)
	switch {
	case err != nil:
		return err
	case !ok:
		return app.ErrUnauthorized
	case !controller.May(app.PermissionRegistryWrite):
		return app.ErrForbidden
	}
	return nil
}

var errUnmigrated = errors.New("controllers and instructions of routes need the migration 059_registry_changes.sql: run `verbatim migrate up` first")

// Apply implements [app.RegistryTx].
func (a *application) Apply(r app.Registry) error {
	if !a.records && needsRecords(r) {
		return errUnmigrated
	}
	if err := a.lock(r); err != nil {
		return err
	}
	for _, step := range []func(app.Registry) error{a.clients, a.routes, a.sessions, a.runs, a.controllers} {
		if err := step(r); err != nil {
			return err
		}
	}
	return nil
}

func needsRecords(r app.Registry) bool {
	needs := len(r.Controllers) > 0
	for _, e := range r.Routes {
		needs = needs || e.Instructions != ""
	}
	return needs
}

// find reads the row with the primary key, and reports whether there is one.
func find[T any](tx *gorm.DB, column, key string) (row T, found bool, err error) {
	res := tx.Where(map[string]any{column: key}).Limit(1).Find(&row)
	return row, res.RowsAffected > 0, res.Error
}

// known is find for a row that must be there.
func known[T any](tx *gorm.DB, kind, column, key string) (T, error) {
	row, found, err := find[T](tx, column, key)
	if err == nil && !found {
		err = refusal.New(refusal.RegistryNotFound, "there is no such "+kind)
	}
	return row, err
}

// inUse words what a token that somebody else has means.
func inUse(kind, name string, err error) error {
	var pg *pgconn.PgError
	if errors.As(err, &pg) && pg.Code == uniqueViolation {
		return app.Conflict(fmt.Sprintf("%s %s: its token belongs to another %s", kind, name, kind), "the token belongs to another "+kind)
	}
	return err
}

// generate draws a token and keeps it for the one time it is shown.
func (a *application) generate(kind, name, prefix string) string {
	token := a.NewToken(prefix)
	a.result.Tokens = append(a.result.Tokens, app.Token{Kind: kind, Name: name, Value: token})
	return token
}
