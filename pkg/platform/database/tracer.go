package database

import (
	"context"
	"database/sql"
	"errors"

	"github.com/exaring/otelpgx"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// tracer is otelpgx without the text of errors: the server's messages can quote a
// parameter, and a span must not hold any of a conversation's text.
type tracer struct{ *otelpgx.Tracer }

func newTracer() tracer {
	return tracer{otelpgx.NewTracer()}
}

// TraceQueryEnd ends a query's span.
func (t tracer) TraceQueryEnd(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryEndData) {
	data.Err = withoutText(data.Err)
	t.Tracer.TraceQueryEnd(ctx, conn, data)
}

// TraceBatchQuery notes one query of a batch.
func (t tracer) TraceBatchQuery(ctx context.Context, conn *pgx.Conn, data pgx.TraceBatchQueryData) {
	data.Err = withoutText(data.Err)
	t.Tracer.TraceBatchQuery(ctx, conn, data)
}

// TraceBatchEnd ends a batch's span.
func (t tracer) TraceBatchEnd(ctx context.Context, conn *pgx.Conn, data pgx.TraceBatchEndData) {
	data.Err = withoutText(data.Err)
	t.Tracer.TraceBatchEnd(ctx, conn, data)
}

// TraceCopyFromEnd ends a copy's span.
func (t tracer) TraceCopyFromEnd(ctx context.Context, conn *pgx.Conn, data pgx.TraceCopyFromEndData) {
	data.Err = withoutText(data.Err)
	t.Tracer.TraceCopyFromEnd(ctx, conn, data)
}

// TracePrepareEnd ends a preparation's span.
func (t tracer) TracePrepareEnd(ctx context.Context, conn *pgx.Conn, data pgx.TracePrepareEndData) {
	data.Err = withoutText(data.Err)
	t.Tracer.TracePrepareEnd(ctx, conn, data)
}

// withoutText keeps an error's kind, which otelpgx looks at, and drops its message.
func withoutText(err error) error {
	if err == nil || errors.Is(err, sql.ErrNoRows) {
		return err
	}
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		return &pgconn.PgError{Severity: pgErr.Severity, Code: pgErr.Code, Message: "refused by the server"}
	}
	return errors.New(describe(err))
}
