package client

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"
)

// Archive returns an archive of the spool by its client_archive_id, or ErrNotFound.
func (s *Spool) Archive(id string) (*Archive, error) {
	id, _ = parseUUID(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.archives[id]; a != nil {
		return a, nil
	}
	return nil, fmt.Errorf("%w: the archive", ErrNotFound)
}

// Archives returns the status of all archives, in the order in which they were opened.
func (s *Spool) Archives() ([]Status, error) {
	type numbered struct {
		Status
		number uint64
	}
	var all []numbered
	err := s.view(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketArchives).ForEach(func(id, value []byte) error {
			var r archiveRecord
			err := json.Unmarshal(value, &r)
			all = append(all, numbered{r.status(string(id)), r.CreatedNo})
			return err
		})
	})
	slices.SortFunc(all, func(a, b numbered) int {
		if a.number < b.number {
			return -1
		}
		return 1
	})
	out := make([]Status, len(all))
	for i, a := range all {
		out[i] = a.Status
	}
	return out, err
}

// ID is the archive's client_archive_id.
func (a *Archive) ID() string { return a.id }

// Status returns what the spool knows of the archive; it asks nobody.
func (a *Archive) Status() (Status, error) {
	r, err := a.load()
	if err != nil {
		return Status{}, err
	}
	return r.status(a.id), nil
}

func (r *archiveRecord) status(id string) Status {
	return Status{
		ID: id, ConversationID: r.ConversationID, HubID: r.HubID, State: r.state(),
		LastSequence: r.Last, Acknowledged: r.Acknowledged, RunningTurn: r.Turn, Refusal: r.Refusal,
	}
}

// Events returns at most limit stored events after a sequence, in order. After a restart
// it tells a host what it had appended.
func (a *Archive) Events(after, limit int) ([]Event, error) {
	var events []Event
	err := a.spool.view(func(tx *bbolt.Tx) error {
		stored := tx.Bucket(bucketEvents).Bucket([]byte(a.id))
		if stored == nil {
			return fmt.Errorf("%w: the archive", ErrNotFound)
		}
		cursor := stored.Cursor()
		for k, v := cursor.Seek(sequenceKey(max(after, 0) + 1)); k != nil && len(events) < limit; k, v = cursor.Next() {
			var w wireEvent
			if err := json.Unmarshal(v, &w); err != nil {
				return err
			}
			events = append(events, w.event())
		}
		return nil
	})
	return events, err
}

// Resume forgets a refusal, once its cause is mended at the hub: the next Sync goes on
// where it was, with the same requests.
func (a *Archive) Resume() error {
	err := a.change("resume", func(_ *bbolt.Tx, r *archiveRecord) error {
		r.Refusal = nil
		return nil
	})
	a.spool.poke()
	return err
}

// Forget removes an archive of which everything is acknowledged from the spool, and
// returns ErrNotArchived for any other: nothing that the hub does not hold is removed. No
// event can be added to it afterwards, not even a late run link.
func (a *Archive) Forget() error {
	err := a.spool.update(func(tx *bbolt.Tx) error {
		r, err := a.read(tx)
		if err != nil {
			return err
		}
		if !r.status(a.id).Archived() {
			return ErrNotArchived
		}
		for _, name := range [][]byte{bucketEvents, bucketIDs, bucketTurns} {
			if err := tx.Bucket(name).DeleteBucket([]byte(a.id)); err != nil {
				return err
			}
		}
		if specs := tx.Bucket(bucketSpecs); string(specs.Get(r.SpecHash)) == a.id {
			if err := specs.Delete(r.SpecHash); err != nil {
				return err
			}
		}
		return tx.Bucket(bucketArchives).Delete([]byte(a.id))
	})
	if err != nil {
		return err
	}
	a.spool.mu.Lock()
	defer a.spool.mu.Unlock()
	delete(a.spool.archives, a.id)
	return nil
}

func (a *Archive) load() (r *archiveRecord, err error) {
	err = a.spool.view(func(tx *bbolt.Tx) error {
		r, err = a.read(tx)
		return err
	})
	return r, err
}

func (a *Archive) read(tx *bbolt.Tx) (*archiveRecord, error) {
	value := tx.Bucket(bucketArchives).Get([]byte(a.id))
	if value == nil {
		return nil, fmt.Errorf("%w: the archive", ErrNotFound)
	}
	var r archiveRecord
	if err := json.Unmarshal(value, &r); err != nil {
		return nil, err
	}
	return &r, nil
}

// change lets fn change the record; it is on disk when change returns nil. The step's name
// says what is stored.
func (a *Archive) change(step string, fn func(tx *bbolt.Tx, r *archiveRecord) error) error {
	err := a.spool.update(func(tx *bbolt.Tx) error {
		r, err := a.read(tx)
		if err != nil {
			return err
		}
		if err := fn(tx, r); err != nil {
			return err
		}
		if err := put(tx.Bucket(bucketArchives), a.id, r); err != nil {
			return err
		}
		a.spool.step(step + ": before commit")
		return nil
	})
	if err != nil {
		return err
	}
	a.spool.step(step + ": committed")
	return nil
}

// sequenceKey orders events by their sequence.
func sequenceKey(sequence int) []byte {
	return binary.BigEndian.AppendUint32(nil, uint32(sequence)) //nolint:gosec // at most MaxEvents
}
