package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

const (
	spoolFormat  = "verbatim-spool.v1"
	lockPatience = 200 * time.Millisecond
)

// The buckets of the file. events, ids and turns hold a bucket per archive.
var (
	bucketMeta     = []byte("meta")     // format, hub
	bucketSessions = []byte("sessions") // session id -> sessionRecord
	bucketArchives = []byte("archives") // archive id -> archiveRecord
	bucketSpecs    = []byte("specs")    // hash of what OpenArchive was asked for -> archive id
	bucketRuns     = []byte("runs")     // run id -> the archive that links it
	bucketEvents   = []byte("events")   // sequence -> the event as it is sent
	bucketIDs      = []byte("ids")      // event id -> sequence
	bucketTurns    = []byte("turns")    // turn id -> "started", for the turns that have started
)

// Spool is one file that keeps an agent's sessions, archives and events across crashes;
// it belongs to one hub. Safe for concurrent use; only one process can have it open.
type Spool struct {
	hub   *Hub
	db    *bbolt.DB
	clock func() time.Time
	// step is told where the work stands; tests kill the process there.
	step func(name string)
	// wake is poked when there is something new for Run.
	wake chan struct{}

	adding   sync.Mutex // held while a session is added
	mu       sync.Mutex // guards the maps
	sessions map[string]*Session
	archives map[string]*Archive
}

// spoolOption changes a spool for tests.
type spoolOption func(*Spool)

// OpenSpool opens the spool at path, and makes it if there is none; its directory must
// exist. Errors: ErrLocked when another process has it open; ErrSpool when it is another
// hub's, no spool, or readable to others than its owner.
func OpenSpool(path string, hub *Hub) (*Spool, error) { return openSpool(path, hub) }

func openSpool(path string, hub *Hub, options ...spoolOption) (*Spool, error) {
	info, err := os.Stat(path)
	if err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%w: others than the owner may read or write the file", ErrSpool)
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: lockPatience, FreelistType: bbolt.FreelistMapType})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, ErrLocked
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrSpool, err)
	}
	s := &Spool{
		hub: hub, db: db, clock: systemTime, step: func(string) {}, wake: make(chan struct{}, 1),
		sessions: map[string]*Session{}, archives: map[string]*Archive{},
	}
	for _, option := range options {
		option(s)
	}
	err = s.prepare()
	if err == nil {
		err = syncDirectory(filepath.Dir(path))
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return s, nil
}

// Close closes the file. What is being synced ends with ErrClosed or ErrUnavailable;
// nothing that was stored is lost.
func (s *Spool) Close() error { return s.db.Close() }

// Hub returns the hub that the spool belongs to.
func (s *Spool) Hub() *Hub { return s.hub }

// prepare makes the buckets of a new file, and loads the names of what an old one has.
func (s *Spool) prepare() error {
	return s.update(func(tx *bbolt.Tx) error {
		meta := tx.Bucket(bucketMeta)
		if meta == nil {
			if name, _ := tx.Cursor().First(); name != nil {
				return fmt.Errorf("%w: the file is another program's", ErrSpool)
			}
			for _, name := range [][]byte{
				bucketMeta, bucketSessions, bucketArchives, bucketSpecs, bucketRuns, bucketEvents, bucketIDs, bucketTurns,
			} {
				if _, err := tx.CreateBucket(name); err != nil {
					return err
				}
			}
			meta = tx.Bucket(bucketMeta)
			if err := meta.Put([]byte("format"), []byte(spoolFormat)); err != nil {
				return err
			}
			return meta.Put([]byte("hub"), []byte(s.hub.base))
		}
		if !bytes.Equal(meta.Get([]byte("format")), []byte(spoolFormat)) {
			return fmt.Errorf("%w: the file has another format", ErrSpool)
		}
		if !bytes.Equal(meta.Get([]byte("hub")), []byte(s.hub.base)) {
			return fmt.Errorf("%w: the file belongs to another hub", ErrSpool)
		}
		err := tx.Bucket(bucketSessions).ForEach(func(id, value []byte) error {
			var r sessionRecord
			err := json.Unmarshal(value, &r)
			s.sessions[string(id)] = newSession(s, string(id), r)
			return err
		})
		if err != nil {
			return fmt.Errorf("%w: a session cannot be read", ErrSpool)
		}
		return tx.Bucket(bucketArchives).ForEach(func(id, _ []byte) error {
			s.archives[string(id)] = newArchive(s, string(id))
			return nil
		})
	})
}

// update runs a transaction that is on disk when update returns nil.
func (s *Spool) update(fn func(tx *bbolt.Tx) error) error { return closed(s.db.Update(fn)) }

func (s *Spool) view(fn func(tx *bbolt.Tx) error) error { return closed(s.db.View(fn)) }

func closed(err error) error {
	if errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		return ErrClosed
	}
	return err
}

func put(b *bbolt.Bucket, key string, v any) error {
	value, err := encode(v)
	if err != nil {
		return err
	}
	return b.Put([]byte(key), value)
}

// poke lets Run look for work.
func (s *Spool) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// syncDirectory makes the name of a file that may be new durable.
func syncDirectory(path string) error {
	if runtime.GOOS == "windows" { // directories cannot be synced there
		return nil
	}
	d, err := os.Open(path) //nolint:gosec // the caller's own directory
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// semaphore is a lock that can be waited for with a context.
type semaphore chan struct{}

func newSemaphore() semaphore { return make(semaphore, 1) }

// acquire takes the lock, or returns the context's error.
func (s semaphore) acquire(ctx context.Context) error {
	select {
	case s <- struct{}{}:
		return nil
	default:
	}
	select {
	case s <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s semaphore) release() { <-s }
