package database

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

const defaultSlowQuery = 500 * time.Millisecond

// queryLog is gorm's logger. gorm's own prints the text of errors, which quotes values,
// even when it is told to leave parameters out.
type queryLog struct {
	log  *slog.Logger
	slow time.Duration
}

var (
	_ logger.Interface  = queryLog{}
	_ gorm.ParamsFilter = queryLog{}
)

// Scan and the like go through gorm's recorder, which asks a filter of its own; it is one
// for the whole program.
func init() { logger.RecorderParamsFilter = queryLog{}.ParamsFilter }

func newQueryLog(log *slog.Logger, slow time.Duration) queryLog {
	if log == nil {
		log = slog.Default()
	}
	if slow <= 0 {
		slow = defaultSlowQuery
	}
	return queryLog{log: log, slow: slow}
}

// LogMode keeps the level: slog decides what is shown.
func (q queryLog) LogMode(logger.LogLevel) logger.Interface { return q }

// Info logs gorm's message without its arguments, which can be values.
func (q queryLog) Info(ctx context.Context, msg string, _ ...any) {
	q.log.DebugContext(ctx, "gorm", slog.String("note", msg))
}

// Warn logs gorm's message without its arguments.
func (q queryLog) Warn(ctx context.Context, msg string, _ ...any) {
	q.log.WarnContext(ctx, "gorm", slog.String("note", msg))
}

// Error logs gorm's message without its arguments.
func (q queryLog) Error(ctx context.Context, msg string, _ ...any) {
	q.log.ErrorContext(ctx, "gorm", slog.String("note", msg))
}

// Trace logs slow queries, and failed ones for debugging: what a failure means is for
// its caller to say.
func (q queryLog) Trace(ctx context.Context, begin time.Time, statement func() (string, int64), err error) {
	elapsed := time.Since(begin)
	failed := err != nil && !errors.Is(err, gorm.ErrRecordNotFound)
	slow := elapsed >= q.slow
	level := slog.LevelDebug
	switch {
	case slow:
		level = slog.LevelWarn
	case !failed:
		return
	}
	if !q.log.Enabled(ctx, level) {
		return
	}
	text, rows := statement()
	attrs := []slog.Attr{slog.Bool("slow", slow), slog.Duration("elapsed", elapsed), slog.Int64("rows", rows), slog.String("sql", text)}
	if failed {
		attrs = append(attrs, slog.String("failure", describe(err)))
	}
	q.log.LogAttrs(ctx, level, "query", attrs...)
}

// ParamsFilter keeps values out of the statement that gorm hands to Trace.
func (queryLog) ParamsFilter(_ context.Context, sql string, _ ...any) (string, []any) {
	return sql, nil
}

// describe says what an error is without its text.
func describe(err error) string {
	var pgErr *pgconn.PgError
	switch {
	case errors.As(err, &pgErr):
		return "SQLSTATE " + pgErr.Code
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, context.DeadlineExceeded):
		return "deadline exceeded"
	case Classify(err) == Transient:
		return "connection"
	default:
		return "client"
	}
}
