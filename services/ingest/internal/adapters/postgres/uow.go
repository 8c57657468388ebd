package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"verbatim.internal/pkg/domain/archive"
	"verbatim.internal/pkg/domain/run"
	"verbatim.internal/pkg/platform/database"
	"verbatim.internal/pkg/platform/telemetry"
	"verbatim.internal/services/ingest/internal/app"
)

// Waker is told which outbox partitions have new rows, right after their commit.
type Waker interface {
	// Wake never blocks.
	Wake(partition int)
}

// UnitOfWork implements [app.UnitOfWork] on a connection pool.
type UnitOfWork struct {
	pool   *pgxpool.Pool
	schema *Schema
	waker  Waker
	memory *memory
}

// NewUnitOfWork returns a unit of work over the pool.
func NewUnitOfWork(pool *pgxpool.Pool, schema *Schema, waker Waker) *UnitOfWork {
	return &UnitOfWork{pool: pool, schema: schema, waker: waker, memory: newMemory()}
}

// Do implements [app.UnitOfWork].
func (u *UnitOfWork) Do(ctx context.Context, fn func(ctx context.Context, tx app.Tx) error) error {
	return u.transact(ctx, func(ctx context.Context, tx *transaction) error { return fn(ctx, tx) })
}

func (u *UnitOfWork) transact(ctx context.Context, fn func(ctx context.Context, tx *transaction) error) error {
	return database.RetrySerialization(ctx, func() error { return u.once(ctx, fn) })
}

func (u *UnitOfWork) once(ctx context.Context, fn func(ctx context.Context, tx *transaction) error) error {
	caps, err := u.schema.Capabilities(ctx)
	if err != nil {
		return err
	}
	conn, err := u.pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("acquire a connection: %w", err)
	}
	defer conn.Release() // a connection that is still in a transaction is closed, not reused
	tx := &transaction{conn: conn.Conn(), sql: statementsFor(caps.MemberBindings), epochs: caps.Epoch, trace: notEmpty(telemetry.InjectTrace(ctx))}
	if err := fn(ctx, tx); err != nil {
		tx.rollback(ctx)
		return err
	}
	if err := tx.commit(ctx); err != nil {
		tx.rollback(ctx)
		return err
	}
	for _, p := range tx.partitions {
		u.waker.Wake(p)
	}
	u.memory.keep(tx.recalled)
	return nil
}

// transaction implements [app.Tx]. Its BEGIN travels with the first read and its
// writes travel with the COMMIT.
type transaction struct {
	conn       *pgx.Conn
	sql        *statements
	begun      bool
	writes     pgx.Batch
	partitions []int         // outbox partitions written to
	trace      *string       // the trace context that travels with the outbox messages
	epochs     bool          // whether migration 063 is there
	recalled   *recollection // what is remembered once this is committed
}

// read sends the queued statements in one round trip, in order.
func (t *transaction) read(ctx context.Context, queue func(b *pgx.Batch)) error {
	b := &pgx.Batch{}
	if !t.begun {
		b.Queue("begin")
		t.begun = true
	}
	queue(b)
	return t.conn.SendBatch(ctx, b).Close()
}

func (t *transaction) commit(ctx context.Context) error {
	if !t.begun {
		return nil
	}
	var tag pgconn.CommandTag
	t.writes.Queue("commit").Exec(func(ct pgconn.CommandTag) error {
		tag = ct
		return nil
	})
	if err := t.conn.SendBatch(ctx, &t.writes).Close(); err != nil {
		return refuseDuplicates(err)
	}
	if tag.String() != "COMMIT" {
		return errors.New("the transaction was rolled back by the database")
	}
	return nil
}

// rollback ends a transaction that is still open. Its error does not matter: a
// connection that cannot roll back is closed, which rolls back too.
func (t *transaction) rollback(ctx context.Context) {
	if t.begun && !t.conn.IsClosed() && t.conn.PgConn().TxStatus() != 'I' {
		_, _ = t.conn.Exec(ctx, "rollback")
	}
}

const (
	uniqueViolation = "23505"
	runLinkKey      = "bz_agent_conversation_run_links_pkey"
	eventIDKey      = "bz_agent_conversation_events_conversation_id_event_id_key"
	turnStartKey    = "bz_agent_conversation_events_turn_start"
	messageKey      = "bz_agent_run_completions_thread_id_assistant_message_id_key"
	jobKey          = "bz_agent_run_jobs_pkey"
)

// refuseDuplicates turns unique violations into what the rules would have said:
// a run that a rival linked first, an event id that is stored already, a turn that has
// started already, and a message id or a job that a rival took first.
func refuseDuplicates(err error) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Code != uniqueViolation {
		return err
	}
	switch pg.ConstraintName {
	case runLinkKey:
		return archive.ErrRunLink
	case eventIDKey:
		return archive.ErrEventIDUsed
	case turnStartKey:
		return archive.ErrTurn
	case messageKey:
		return run.ErrMessage
	case jobKey:
		return run.ErrJob
	default:
		return err
	}
}
