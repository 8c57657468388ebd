package archive_test

import (
	"testing"

	"pgregory.net/rapid"

	"verbatim.internal/pkg/domain/archive"
)

// Random histories of everything that can happen to archives, against the
// model: after each step the answer and the whole state must be the same.
// A failure prints the seed that repeats it.
func TestHistoriesAgainstTheModel(t *testing.T) {
	t.Parallel()
	outcomes := map[string]int{}
	rapid.Check(t, func(t *rapid.T) { newHistory(outcomes).run(t) })
	t.Log(outcomes)
}

func FuzzHistories(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) { newHistory(map[string]int{}).run(t) }))
}

type history struct {
	model    *model
	system   *system
	worlds   []world // before each damage that still stands
	asked    []request
	outcomes map[string]int
}

// request is a creation that was asked for, to be asked for again.
type request struct {
	in     mCreation
	bearer string
}

func newHistory(outcomes map[string]int) *history {
	m := &model{world: newWorld(), runs: map[string]mRun{}}
	return &history{model: m, system: &system{registry: m}, outcomes: outcomes}
}

func (h *history) run(t *rapid.T) {
	h.create(t)
	actions := map[string]func(*rapid.T){
		"create":                  h.create,
		"create again":            h.createAgain,
		"confirm":                 h.confirm,
		"confirm all":             h.confirmAll,
		"append new":              h.appending(h.next),
		"append more":             h.appending(h.next),
		"append a retry":          h.appending(h.retry),
		"append old and new":      h.appending(h.mixed),
		"append what is spoilt":   h.appending(h.spoilt),
		"append as somebody else": h.appendAsAnother,
		"fill":                    h.fill,
		"take away":               h.takeAway,
		"give back":               h.giveBack,
		"": func(t *rapid.T) {
			h.model.now += rapid.IntRange(0, 2).Draw(t, "seconds")
			if d := difference(h.system, h.model); d != "" {
				t.Fatal(d)
			}
		},
	}
	for range 3 { // rapid repeats about thirty times, too few for a full archive
		t.Repeat(actions)
	}
}

// same fails when the answers differ.
func (h *history) same(t *rapid.T, step, got, want string) {
	h.outcomes[step+" "+want]++
	if got != want {
		t.Fatalf("%s: got %q, want %q", step, got, want)
	}
}

func (h *history) create(t *rapid.T) {
	in, bearer := drawCreation(t)
	h.ask(t, request{in, bearer})
}

// createAgain repeats a creation, sometimes for an archive of the other version or otherwise flawed.
func (h *history) createAgain(t *rapid.T) {
	r := drawn(t, "again", h.asked...)
	r.in.members = append([]archive.MemberFields(nil), r.in.members...)
	if len(r.in.members) > 0 && rarely(t, "flawed", 3) {
		r.bearer = flaw(t, &r.in, r.bearer)
	}
	h.ask(t, r)
}

func (h *history) ask(t *rapid.T, r request) {
	h.asked = append(h.asked, r)
	got, system := h.system.create(r.in, r.bearer)
	want, model := h.model.create(r.in, r.bearer)
	h.same(t, "create", got, want)
	if want == "" && h.model.archives[system.id] != model {
		t.Fatalf("create: got archive %d", system.id)
	}
}

// archive picks one, mostly the newest; false when there is none.
func (h *history) archive(t *rapid.T) (*storedArchive, *mArchive, bool) {
	n := len(h.system.stored)
	if n == 0 {
		return nil, nil, false
	}
	i := n - 1
	if rarely(t, "an older one", 4) {
		i = rapid.IntRange(0, n-1).Draw(t, "archive")
	}
	return h.system.stored[i], h.model.archives[i], true
}

func (h *history) confirm(t *rapid.T) {
	s, m, ok := h.archive(t)
	if !ok {
		return
	}
	bearer := drawn(t, "member", m.members...).id
	if rarely(t, "a stranger", 6) {
		bearer = drawn(t, "bearer", worldSessions...)
	}
	h.same(t, "confirm", h.system.confirm(s, bearer), h.model.confirm(m, bearer))
}

func (h *history) confirmAll(t *rapid.T) {
	if s, m, ok := h.archive(t); ok {
		for _, x := range m.members {
			h.same(t, "confirm", h.system.confirm(s, x.id), h.model.confirm(m, x.id))
		}
	}
}

func (h *history) appending(draw func(*rapid.T, *mArchive) []archive.Fields) func(*rapid.T) {
	return func(t *rapid.T) {
		if s, m, ok := h.archive(t); ok {
			batch := draw(t, m)
			h.same(t, "append", h.system.append(s, m.creator, batch), h.model.append(m, m.creator, batch))
		}
	}
}

func (h *history) next(t *rapid.T, a *mArchive) []archive.Fields { return drawNext(t, h.model, a) }

func (h *history) retry(t *rapid.T, a *mArchive) []archive.Fields {
	if len(a.events) == 0 {
		return h.next(t, a)
	}
	return drawRetry(t, a)
}

func (h *history) mixed(t *rapid.T, a *mArchive) []archive.Fields {
	var old []archive.Fields
	for _, e := range a.events[max(0, len(a.events)-rapid.IntRange(0, 4).Draw(t, "old")):] {
		old = append(old, sent(e))
	}
	return append(old, h.next(t, a)...)
}

func (h *history) spoilt(t *rapid.T, a *mArchive) []archive.Fields { return spoil(t, a, h.mixed(t, a)) }

func (h *history) appendAsAnother(t *rapid.T) {
	if s, m, ok := h.archive(t); ok {
		bearer, batch := drawn(t, "bearer", worldSessions...), h.mixed(t, m)
		h.same(t, "append", h.system.append(s, bearer, batch), h.model.append(m, bearer, batch))
	}
}

// fill lets an archive be all but full, as if megabytes had been stored before.
func (h *history) fill(t *rapid.T) {
	if s, m, ok := h.archive(t); ok && m.earlierText == 0 {
		m.earlierText = archive.MaxArchiveBytes - m.text(m.events) - rapid.Int64Range(0, 60).Draw(t, "free")
		s.TextBytes += m.earlierText
	}
}

func (h *history) takeAway(t *rapid.T) {
	h.worlds = append(h.worlds, h.model.clone())
	damage(t, h.model)
}

// giveBack undoes the last damage, or all of it.
func (h *history) giveBack(t *rapid.T) {
	if len(h.worlds) == 0 {
		return
	}
	keep := len(h.worlds) - 1
	if rapid.Bool().Draw(t, "all") {
		keep = 0
	}
	h.model.world, h.worlds = h.worlds[keep], h.worlds[:keep]
}
