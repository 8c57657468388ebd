package postgres

import (
	"context"

	"gorm.io/gorm"

	"verbatim.internal/services/auditview/internal/app"
	"verbatim.internal/services/auditview/internal/runtrace"
)

// Threads implements app.RunStore. The thread ids come from a loose scan of the index
// runs_thread, one look-up for each; only the threads of the page are counted.
func (s *Store) Threads(ctx context.Context, limit int, before int64) ([]app.Thread, error) {
	var threads []app.Thread
	err := s.db.Gorm.WithContext(ctx).Raw(`
with recursive page (thread_id, position) as (
	select (select max(thread_id) from runs where thread_id > 0 and thread_id < $1::bigint), 1
	union all
	select (select max(r.thread_id) from runs r where r.thread_id > 0 and r.thread_id < page.thread_id), position + 1
	from page
	where page.thread_id is not null and position < $2::integer
)
`+sqlThreads+`
order by page.thread_id desc`, before, limit).Scan(&threads).Error
	return threads, readError(err)
}

// sqlThreads selects the threads of page. The status, which nobody asks for, makes the
// list wait for the migration that brings the index.
const sqlThreads = `
select page.thread_id, f.session_id, f.client_app_id, f.route_key, f.client_conversation_id, n.run_count,
       f.created_at as first_run_at, l.created_at as last_run_at
from page
cross join lateral (
	select session_id, client_app_id, route_key, client_conversation_id, created_at, status
	from runs where thread_id = page.thread_id order by created_at, run_id limit 1
) f
cross join lateral (
	select created_at from runs where thread_id = page.thread_id order by created_at desc, run_id desc limit 1
) l
cross join lateral (select count(*) as run_count from runs where thread_id = page.thread_id) n`

// Thread implements app.RunStore.
func (s *Store) Thread(ctx context.Context, threadID int64, limit int, offset int64) (thread app.Thread, runs []app.Run, err error) {
	found := false
	err = s.snapshot(ctx, func(tx *gorm.DB) error {
		header := tx.Raw(`with page as (select $1::bigint as thread_id)`+sqlThreads, threadID).Scan(&thread)
		if found = header.RowsAffected == 1; header.Error != nil || !found {
			return header.Error
		}
		return tx.Raw(`
with page as (
	select * from runs where thread_id = $1::bigint order by created_at, run_id limit $2 offset $3
)
select `+sqlRunColumns+`, m.conversation_id
from page r`+sqlVerifiedLink+`
order by r.created_at, r.run_id`, threadID, limit, offset).Scan(&runs).Error
	})
	switch {
	case err != nil:
		return app.Thread{}, nil, readError(err)
	case !found:
		return app.Thread{}, nil, app.ErrThreadNotFound
	default:
		return thread, runs, nil
	}
}

const (
	sqlRunColumns = `r.run_id, r.session_id, r.client_app_id, r.route_key, r.thread_id, r.client_conversation_id, r.client_turn_id,
	r.created_at, r.status, r.model, r.runtime, r.usage, r.completed_at`

	// A link counts when its archive and member agree with the run in everything that ingest
	// verified: session, binding (the member's own, or the common one of version 1), thread,
	// conversation and turn. Only then m has a row.
	sqlVerifiedLink = `
left join run_links l on l.run_id = r.run_id
left join archives a on a.conversation_id = l.conversation_id
	and a.client_conversation_id = r.client_conversation_id
left join archive_members m on m.conversation_id = a.conversation_id and m.session_id = l.member_session_id
	and m.session_id = r.session_id and l.thread_id = r.thread_id and l.client_turn_id = r.client_turn_id
	and r.client_app_id = case when a.membership_version = 1 then a.client_app_id else m.client_app_id end
	and r.route_key = case when a.membership_version = 1 then a.route_key else m.route_key end`

	sqlRun = `
select ` + sqlRunColumns + `, l.run_id is not null as linked, m.conversation_id,
       to_regclass('executions') is not null as executions -- they come with a later migration
from runs r` + sqlVerifiedLink + `
where r.run_id = $1::uuid`

	sqlRunExecutions = `
select client_app_id, swarm_id, result
from executions
where run_id = $1::uuid and client_app_id = $2::text
order by created_at, execution_id
limit $3`

	// Events above a run's last position belong to a snapshot that is not complete.
	sqlTraceEvents = `
select e.position, e.event, e.occurred_at, e.job_id, e.metadata, e.dropped_fields, e.run_id
from run_trace_events e
join runs r on r.run_id = e.run_id and e.position <= r.last_position`
)

// runRow is a run and whether anything, true or not, links to it.
type runRow struct {
	app.Run `gorm:"embedded"`
	Linked  bool
	// Executions tells whether the database has any.
	Executions bool
}

// traceEventRow is a stored event and the run that it is of.
type traceEventRow struct {
	runtrace.Event `gorm:"embedded"`
	RunID          string
}

func traceEvents(rows []traceEventRow) []runtrace.Event {
	events := make([]runtrace.Event, len(rows))
	for i, row := range rows {
		events[i] = row.Event
	}
	return events
}

// Run implements app.RunStore.
func (s *Store) Run(ctx context.Context, threadID int64, runID string) (app.Run, []runtrace.Event, []app.RunExecution, error) {
	var runs []runRow
	var events []traceEventRow
	var executions []app.RunExecution
	err := s.snapshot(ctx, func(tx *gorm.DB) error {
		err := tx.Raw(sqlRun+` and r.thread_id = $2::bigint`, runID, threadID).Scan(&runs).Error
		if err != nil || len(runs) == 0 {
			return err
		}
		if runs[0].Executions {
			err = tx.Raw(sqlRunExecutions, runID, runs[0].ClientAppID, app.MaxRunExecutions).Scan(&executions).Error
		}
		if err != nil {
			return err
		}
		return tx.Raw(sqlTraceEvents+` where e.run_id = $1::uuid order by e.position`, runID).Scan(&events).Error
	})
	if err != nil {
		return app.Run{}, nil, nil, readError(err)
	}
	if len(runs) != 1 || runs[0].Linked && runs[0].ConversationID == nil {
		return app.Run{}, nil, nil, app.ErrRunNotFound
	}
	return runs[0].Run, traceEvents(events), executions, nil
}

// Job implements app.RunStore.
func (s *Store) Job(ctx context.Context, jobID string) (app.Run, []runtrace.Event, error) {
	var runs []runRow
	var events []traceEventRow
	err := s.snapshot(ctx, func(tx *gorm.DB) error {
		err := tx.Raw(sqlTraceEvents+` where e.job_id = $1::uuid order by e.position`, jobID).Scan(&events).Error
		if err != nil || len(events) == 0 {
			return err
		}
		return tx.Raw(sqlRun, events[0].RunID).Scan(&runs).Error
	})
	if err != nil {
		return app.Run{}, nil, readError(err)
	}
	if len(runs) != 1 || !ofOneRun(events) {
		return app.Run{}, nil, app.ErrRunNotFound
	}
	return runs[0].Run, traceEvents(events), nil
}

func ofOneRun(events []traceEventRow) bool {
	for _, e := range events {
		if e.RunID != events[0].RunID {
			return false
		}
	}
	return true
}
