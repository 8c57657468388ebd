package archive_test

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"verbatim.internal/pkg/domain/archive"
	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/pkg/domain/refusal"
)

// The events of the tests, before they are numbered.
func start(turn string) archive.Event {
	return archive.Event{ClientTurnID: turn, Kind: archive.TurnStart}
}

func say(turn, content string) archive.Event {
	return archive.Event{ClientTurnID: turn, Kind: archive.UserMessage, Content: content}
}

func answer(turn, content string) archive.Event {
	return archive.Event{ClientTurnID: turn, Kind: archive.AssistantMessage, Content: content}
}

func end(turn string, status archive.TurnStatus) archive.Event {
	return archive.Event{ClientTurnID: turn, Kind: archive.TurnEnd, Status: status}
}

// link is one of turn t1.
func link(member identity.UUID, run int) archive.Event {
	return archive.Event{ClientTurnID: "t1", Kind: archive.RunLink, RunID: runUUID(run), MemberSessionID: member}
}

// numbered gives events the sequences from first up, and ids by sequence.
func numbered(first int, events ...archive.Event) []archive.Event {
	for i := range events {
		events[i].Sequence = first + i
		events[i].EventID = "event-" + string(rune('a'+first+i))
	}
	return events
}

// journal is what a store would know of one archive, kept by hand.
type journal struct {
	events []archive.Event
	runs   map[identity.UUID]identity.Run
	linked map[identity.UUID]bool // in other archives
}

// history returns all of the journal: more than the batch names does not matter.
func (j *journal) history() archive.History {
	h := archive.History{
		Stored: map[int]archive.Event{}, EventIDs: map[string]int{}, StartedTurns: map[string]bool{}, Runs: j.runs,
		LinkedRuns: map[identity.UUID]bool{},
	}
	for id := range j.linked {
		h.LinkedRuns[id] = true
	}
	for _, e := range j.events {
		h.Stored[e.Sequence], h.EventIDs[e.EventID] = e, e.Sequence
		if e.Kind == archive.TurnStart {
			h.StartedTurns[e.ClientTurnID] = true
		}
		if e.Kind == archive.RunLink {
			h.LinkedRuns[e.RunID] = true
		}
	}
	return h
}

// append applies batch and stores what is new.
func (j *journal) append(t *testing.T, a *archive.Archive, batch []archive.Event) []archive.Event {
	t.Helper()
	fresh, err := a.Append(batch, j.history(), later)
	if err != nil {
		t.Fatal(err)
	}
	j.events = append(j.events, fresh...)
	return fresh
}

// wantAppendRefused checks that batch is refused, and that neither a nor the history changes.
func (j *journal) wantAppendRefused(t *testing.T, want refusal.Code, a *archive.Archive, batch []archive.Event) {
	t.Helper()
	h, untouched, given := j.history(), j.history(), slices.Clone(batch)
	wantRefusal(t, want, a, func() error {
		fresh, err := a.Append(batch, h, later)
		if fresh != nil {
			t.Errorf("refused, with %d events", len(fresh))
		}
		return err
	})
	if !reflect.DeepEqual(h, untouched) || !slices.Equal(batch, given) {
		t.Error("what was given changed")
	}
}

// written is a ready archive with two turns: one ended, one running, six events.
func written(t *testing.T) (*archive.Archive, *journal) {
	t.Helper()
	a, j := readyV1(t), &journal{}
	j.append(t, a, numbered(1, start("t1"), say("t1", "Hé"), answer("t1", "x"), end("t1", archive.Failed), start("t2"), say("t2", "z")))
	return a, j
}

func TestAppendMovesTheHeader(t *testing.T) {
	t.Parallel()
	a, j := readyV1(t), &journal{}
	want := deepCopy(a)
	want.StreamVersion, want.UpdatedAt = 4, later
	check := func(what string) {
		t.Helper()
		if !reflect.DeepEqual(a, want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", what, a, want)
		}
	}
	batch := numbered(1, start("t1"), say("t1", "Hé"), answer("t1", "€"))
	fresh := j.append(t, a, batch)
	want.LastSequence, want.MessageCount, want.TurnCount, want.TextBytes = 3, 2, 1, 6
	want.LastTurnStatus, want.CurrentTurnID = archive.Running, "t1"
	check("a running turn")
	for i, e := range fresh {
		expected := batch[i]
		expected.CreatedAt = later
		if e != expected {
			t.Errorf("event %d: %+v", i, e)
		}
	}

	j.append(t, a, numbered(4, end("t1", archive.Cancelled)))
	want.StreamVersion, want.LastSequence, want.LastTurnStatus, want.CurrentTurnID = 5, 4, archive.Cancelled, ""
	check("a turn that ended")

	j.append(t, a, numbered(5, start("t2"), end("t2", archive.Completed), start("t3"), answer("t3", "a")))
	want.StreamVersion, want.LastSequence, want.LastTurnStatus, want.CurrentTurnID = 6, 8, archive.Running, "t3"
	want.TurnCount, want.MessageCount, want.TextBytes = 3, 3, 7
	check("turns within one batch")
}

func TestRetriesAreSkipped(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ from, to int }{
		"all": {0, 6}, "the first": {0, 1}, "the middle": {2, 4}, "the last": {5, 6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, j := written(t)
			before := deepCopy(a)
			batch := slices.Clone(j.events[tc.from:tc.to])
			for i := range batch {
				batch[i].CreatedAt, batch[i].ThreadID = instant, 0 // as submitted, they are not set
			}
			if fresh := j.append(t, a, batch); len(fresh) != 0 || !reflect.DeepEqual(a, before) {
				t.Errorf("%d events are new; %+v", len(fresh), a)
			}
		})
	}
}

func TestABatchMixesOldAndNew(t *testing.T) {
	t.Parallel()
	a, j := written(t)
	batch := append(slices.Clone(j.events[4:]), numbered(7, answer("t2", "new"), end("t2", archive.Completed))...)
	fresh := j.append(t, a, batch)
	if len(fresh) != 2 || fresh[0].Sequence != 7 || a.LastSequence != 8 || a.StreamVersion != 5 || a.TurnCount != 2 || a.MessageCount != 4 {
		t.Errorf("got %+v and %+v", fresh, a)
	}
}

func TestConflictsWithinTheBatchAndWithTheHistory(t *testing.T) {
	t.Parallel()
	with := func(events []archive.Event, change func([]archive.Event)) []archive.Event {
		change(events)
		return events
	}
	next := func() []archive.Event { return numbered(7, answer("t2", "a"), answer("t2", "b"), answer("t2", "c")) }
	for name, batch := range map[string]func(old []archive.Event) []archive.Event{
		"starts after a gap": func([]archive.Event) []archive.Event { return numbered(8, answer("t2", "a")) },
		"gap inside": func([]archive.Event) []archive.Event {
			return with(next(), func(e []archive.Event) { e[2].Sequence++ })
		},
		"sequence twice": func([]archive.Event) []archive.Event {
			return with(next(), func(e []archive.Event) { e[1].Sequence-- })
		},
		"sequence again": func([]archive.Event) []archive.Event {
			return with(next(), func(e []archive.Event) { e[2].Sequence = 7 })
		},
		"backwards": func([]archive.Event) []archive.Event {
			return with(next(), func(e []archive.Event) { slices.Reverse(e) })
		},
		"event id twice": func([]archive.Event) []archive.Event {
			return with(next(), func(e []archive.Event) { e[2].EventID = e[0].EventID })
		},
		"event id of old": func([]archive.Event) []archive.Event {
			return with(next(), func(e []archive.Event) { e[2].EventID = "event-b" })
		},
		"old, then a gap":     func(old []archive.Event) []archive.Event { return append(old[5:6:6], next()[1]) },
		"old, gap in the old": func(old []archive.Event) []archive.Event { return []archive.Event{old[1], old[3]} },
		"old, backwards":      func(old []archive.Event) []archive.Event { return []archive.Event{old[1], old[0]} },
		"old twice":           func(old []archive.Event) []archive.Event { return []archive.Event{old[1], old[1]} },
		"old, another text": func(old []archive.Event) []archive.Event {
			return with(old, func(e []archive.Event) { e[1].Content = "He" })
		},
		"old, another id": func(old []archive.Event) []archive.Event {
			return with(old, func(e []archive.Event) { e[1].EventID = "other" })
		},
		"old, another's id": func(old []archive.Event) []archive.Event {
			return with(old[1:2], func(e []archive.Event) { e[0].EventID = "event-f" })
		},
		"old, another kind": func(old []archive.Event) []archive.Event {
			return with(old, func(e []archive.Event) { e[1].Kind = archive.AssistantMessage })
		},
		"old, another turn": func(old []archive.Event) []archive.Event {
			return with(old, func(e []archive.Event) { e[1].ClientTurnID = "t2" })
		},
		"old, another status": func(old []archive.Event) []archive.Event {
			return with(old, func(e []archive.Event) { e[3].Status = archive.Completed })
		},
		"old changed, last": func(old []archive.Event) []archive.Event {
			return with(append(old, next()...), func(e []archive.Event) { e[5].Content = "Z" })
		},
		"new, then broken": func(old []archive.Event) []archive.Event {
			return append(old, append(next(), numbered(10, say("t1", "late"))...)...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, j := written(t)
			j.wantAppendRefused(t, refusal.Conflict, a, batch(slices.Clone(j.events)))
		})
	}
}

// Without the ids that are stored, the refusal of a used one is left to the store.
func TestAUsedEventIDIsTheStoresToRefuseWhenHistoryHasNone(t *testing.T) {
	t.Parallel()
	a, j := written(t)
	batch := numbered(7, answer("t2", "a"))
	batch[0].EventID = "event-b"
	if _, err := a.Append(batch, j.history(), later); !errors.Is(err, archive.ErrEventIDUsed) || err.Error() != archive.ErrEventIDUsed.Error() {
		t.Errorf("got %v", err)
	}
	h := j.history()
	h.EventIDs = nil
	if fresh, err := a.Append(batch, h, later); err != nil || len(fresh) != 1 {
		t.Errorf("got %d events, %v", len(fresh), err)
	}
}

func TestAnEmptyHistoryIsEnoughForAFirstBatch(t *testing.T) {
	t.Parallel()
	a := readyV2(t)
	fresh, err := a.Append(numbered(1, start("t1"), say("t1", "a"), end("t1", archive.Completed)), archive.History{}, later)
	if err != nil || len(fresh) != 3 {
		t.Errorf("got %d events, %v", len(fresh), err)
	}
}

// Event by event: what comes first in the batch decides between 409 and 413.
func TestArchiveTextLimit(t *testing.T) {
	t.Parallel()
	const most = 16 << 20
	for name, tc := range map[string]struct {
		stored int64
		batch  []archive.Event
		want   refusal.Code
	}{
		"exactly full":            {most - 4, numbered(7, answer("t2", "€"), answer("t2", "a")), ""},
		"a byte too much":         {most - 3, numbered(7, answer("t2", "€"), answer("t2", "a")), refusal.Limit},
		"full, and no text":       {most, numbered(7, end("t2", archive.Completed), start("t3")), ""},
		"too much, then conflict": {most, numbered(7, answer("t2", "a"), answer("t1", "b")), refusal.Limit},
		"conflict, then too much": {most, numbered(7, answer("t1", "a"), answer("t2", "b")), refusal.Conflict},
		"a conflict and too much": {most, numbered(7, answer("t1", "a")), refusal.Conflict},
		"a gap goes before":       {most, []archive.Event{numbered(7, answer("t2", "a"))[0], numbered(9, answer("t2", "b"))[0]}, refusal.Conflict},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, j := written(t)
			a.TextBytes = tc.stored
			if tc.want != "" {
				j.wantAppendRefused(t, tc.want, a, tc.batch)
				return
			}
			if j.append(t, a, tc.batch); a.TextBytes != most {
				t.Errorf("text is %d bytes", a.TextBytes)
			}
		})
	}
}

func TestAPureRetryNeedsNoRoom(t *testing.T) {
	t.Parallel()
	a, j := written(t)
	a.TextBytes = archive.MaxArchiveBytes
	if fresh := j.append(t, a, slices.Clone(j.events)); len(fresh) != 0 {
		t.Errorf("%d events are new", len(fresh))
	}
}
