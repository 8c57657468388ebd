package postgres

import (
	"fmt"
	"time"

	"gorm.io/gorm/clause"

	"verbatim.internal/pkg/contracts/registryv1"
	"verbatim.internal/pkg/contracts/runv1"
	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/pkg/platform/transport"
	"verbatim.internal/services/ingest/internal/app"
)

func (a *application) runs(r app.Registry) error {
	for i, run := range r.Runs {
		if err := a.run(i, run); err != nil {
			return err
		}
	}
	return nil
}

// run imports the run with an index among those that are imported.
func (a *application) run(i int, r identity.Run) error {
	wanted := runRow{
		RunID: string(r.RunID), SessionID: string(r.SessionID), ClientAppID: r.Binding.ClientAppID, RouteKey: r.Binding.RouteKey,
		ThreadID: r.ThreadID, ClientConversationID: r.ClientConversationID, ClientTurnID: r.ClientTurnID,
		StreamVersion: 1, CreatedAt: a.Now,
	}
	stored, found, err := find[runRow](a.tx, "run_id", wanted.RunID)
	if err != nil {
		return err
	}
	e := &entry{kind: registryv1.KindRun, name: wanted.RunID, found: found}
	if found {
		wanted.StreamVersion, wanted.CreatedAt = stored.StreamVersion, stored.CreatedAt
		if stored != wanted {
			return conflictingRun(i, r, "is stored with other facts, and a run never changes")
		}
		return a.done(e)
	}
	for _, step := range []func(int, identity.Run) error{a.runOwner, a.runThread} {
		if err := step(i, r); err != nil {
			return err
		}
	}
	if err := write(a, e, &wanted); err != nil {
		return err
	}
	if err := a.recordRun(wanted); err != nil {
		return err
	}
	return a.done(e)
}

func conflictingRun(i int, r identity.Run, problem string) error {
	return app.Conflict(fmt.Sprintf("run %s %s", r.RunID, problem), fmt.Sprintf("the run at /runs/%d %s", i, problem))
}

func (a *application) runOwner(i int, r identity.Run) error {
	owner, found, err := find[sessionRow](a.tx, "session_id", string(r.SessionID))
	if err == nil && (!found || owner.ClientAppID != r.Binding.ClientAppID) {
		err = app.Conflict(fmt.Sprintf("run %s names session %s of client %s, which does not exist", r.RunID, r.SessionID, r.Binding.ClientAppID),
			fmt.Sprintf("the run at /runs/%d names a session of a client that does not exist", i))
	}
	return err
}

// importedThread is the thread of a (session, route, client conversation).
type importedThread struct {
	ThreadID             int64 `gorm:"primaryKey;autoIncrement:false"`
	SessionID            string
	RouteKey             string
	ClientConversationID string
	CreatedAt            time.Time
}

// TableName implements gorm's Tabler.
func (importedThread) TableName() string { return "bz_agent_threads" }

// runThread gives a run its thread: a thread is one conversation's, and a conversation of
// a session and route has one.
func (a *application) runThread(i int, r identity.Run) error {
	if !a.threads {
		return nil
	}
	wanted := importedThread{
		ThreadID: r.ThreadID, SessionID: string(r.SessionID), RouteKey: r.Binding.RouteKey,
		ClientConversationID: r.ClientConversationID, CreatedAt: a.Now,
	}
	// What stands in the way may be a turn's that is being opened: the insertion waits for it.
	made := a.tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&wanted)
	if made.Error != nil || made.RowsAffected == 1 {
		return made.Error
	}
	var stored []importedThread
	if err := a.tx.Where("thread_id = ?", r.ThreadID).Find(&stored).Error; err != nil {
		return err
	}
	if len(stored) == 0 {
		return conflictingRun(i, r, "has a thread_id, and its conversation has another thread")
	}
	stored[0].CreatedAt = wanted.CreatedAt
	if stored[0] != wanted {
		return conflictingRun(i, r, "has the thread_id of another conversation's thread")
	}
	return nil
}

func (a *application) recordRun(r runRow) error {
	partition := transport.Partition(r.RunID)
	a.partitions = append(a.partitions, partition)
	return a.tx.Create(&outboxRow{
		Partition: partition, StreamKind: runv1.StreamKind, StreamID: r.RunID, Version: r.StreamVersion,
		Type: runv1.TypeRecorded, Payload: "{}", TraceContext: a.trace, CreatedAt: a.Now,
	}).Error
}
