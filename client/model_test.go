package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"verbatim.internal/client"
	"verbatim.internal/client/internal/hubtest"
)

// errCrash is where a process would have been killed.
var errCrash = errors.New("crash")

// model is an agent that crashes, on a network that loses answers, beside what it knows to
// be true.
type model struct {
	t       *rapid.T
	hub     *hubtest.Hub
	client  *client.Hub
	path    string
	clock   *clock // stands still: on a slow machine a lost rotation would come back too late
	spool   *client.Spool
	archive *client.Archive
	erp     string // the writer's session

	crashAfter int // the number of steps to a crash, 0: none

	mu      sync.Mutex
	faults  []hubtest.Fault // of the next requests
	expired bool            // the tokens have ended during this Sync

	local   []client.Event // what was appended
	turn    string
	turns   int
	drawn   int
	held    int // the events that the hub was seen to hold
	highest int // the highest acknowledged sequence that was seen
}

func newModel(t *rapid.T, dir string) *model {
	m := &model{t: t, hub: hubtest.Start(), path: filepath.Join(dir, "spool"), clock: newClock()}
	m.hub.OnRequest(m.fault)
	m.hub.SetClock(m.clock.now)
	var err error
	m.client, err = client.NewHub(m.hub.URL, client.WithBackoff(1, 1))
	require.NoError(t, err)
	m.open()
	for _, g := range []hubtest.Grant{m.hub.AddSession("erp-demo", "orders"), m.hub.AddSession("crm-demo", "customers")} {
		_, err := m.spool.AddSession(context.Background(), tokensOf(g))
		require.NoError(t, err)
	}
	m.erp = m.spool.Sessions()[0].ID()
	m.find()
	return m
}

func (m *model) close() {
	_ = m.spool.Close()
	m.hub.Close()
}

func (m *model) open() {
	var err error
	m.spool, err = client.OpenHooked(m.path, m.client, client.Hooks{NoSync: true, Clock: m.clock.now, Step: func(string) {
		if m.crashAfter--; m.crashAfter == 0 {
			panic(errCrash)
		}
	}})
	require.NoError(m.t, err)
}

// find returns to the archive, as an agent does after a start.
func (m *model) find() {
	sessions := m.spool.Sessions()
	var err error
	m.archive, err = m.spool.OpenArchive(client.ArchiveSpec{ConversationID: "conversation-1", Members: []client.Member{
		{Session: sessions[0], Route: "orders"}, {Session: sessions[1], Route: "customers"},
	}})
	require.NoError(m.t, err)
}

// restart is a new process on the same file.
func (m *model) restart() {
	m.crashAfter = 0
	require.NoError(m.t, m.spool.Close())
	m.open()
	m.find()
	for i, e := range stored(m.t, m.archive)[:len(m.local)] {
		require.Equal(m.t, m.local[i], e)
	}
}

// mayCrash does f, and reports whether it was cut off somewhere.
func (m *model) mayCrash(f func()) (crashed bool) {
	m.crashAfter = rapid.IntRange(0, 12).Draw(m.t, "crash after")
	defer func() {
		if r := recover(); r != nil {
			if r != errCrash { //nolint:errorlint // a panic's value
				panic(r)
			}
			crashed = true
		}
		m.crashAfter = 0
	}()
	f()
	return false
}

// fault is asked for each request.
func (m *model) fault(*http.Request) hubtest.Fault {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.faults) == 0 {
		return hubtest.Fault{}
	}
	f := m.faults[0]
	m.faults = m.faults[1:]
	if f.Code == "expired" {
		if !m.expired { // twice in a row is a session that is over
			m.hub.ExpireAll()
		}
		m.expired = true
		return hubtest.Fault{}
	}
	return f
}

func (m *model) drawFaults() {
	kinds := map[string]hubtest.Fault{
		"none": {}, "lost before": {Lost: true}, "lost after": {Lost: true, Done: true}, "503": {Status: 503, Code: "conversation_audit_unavailable"},
		"429": {Status: 429, Code: "rate_limited"}, "502": {Status: 502}, "portal": {Body: "<html>"}, "expired": {Code: "expired"},
	}
	names := []string{"none", "lost before", "lost after", "503", "429", "502", "portal", "expired"}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults, m.expired = nil, false
	for _, name := range rapid.SliceOfN(rapid.SampledFrom(names), 0, 8).Draw(m.t, "faults") {
		m.faults = append(m.faults, kinds[name])
	}
}

// drawEvents draws events that fit, and where the turn is after them.
func (m *model) drawEvents() (events []client.Event, turn string, turns int) {
	turn, turns = m.turn, m.turns
	for range rapid.IntRange(1, 30).Draw(m.t, "events") {
		var e client.Event
		switch {
		case turn == "":
			turns++
			turn = fmt.Sprintf("turn-%d", turns)
			e = client.StartTurn(turn)
		case rapid.IntRange(0, 9).Draw(m.t, "end") == 0:
			e, turn = client.EndTurn(turn, client.Failed), ""
		default:
			text := rapid.StringOfN(rapid.RuneFrom([]rune("aé€😀\n\"\\<&\u2028")), 0, 20, -1).Draw(m.t, "text") + "."
			if rapid.IntRange(0, 49).Draw(m.t, "long") == 0 {
				text = strings.Repeat(text, 60_000/len(text))
			}
			e = client.AssistantSaid(turn, text)
		}
		if rapid.Bool().Draw(m.t, "own id") {
			m.drawn++
			e = e.WithID(fmt.Sprintf("own-%d", m.drawn))
		}
		events = append(events, e)
	}
	return events, turn, turns
}

// append appends, and after a crash looks which it was: all or nothing.
func (m *model) append() {
	events, turn, turns := m.drawEvents()
	var got []client.Event
	var err error
	crashed := m.mayCrash(func() { got, err = m.archive.Append(events...) })
	require.NoError(m.t, err)
	if crashed {
		m.restart()
		if got, err = m.archive.Events(len(m.local), client.MaxEvents); len(got) == 0 {
			require.NoError(m.t, err)
			return
		}
	}
	require.Len(m.t, got, len(events))
	for i, e := range events {
		e.Sequence = len(m.local) + 1
		if e.ID == "" {
			e.ID = got[i].ID
		}
		require.Equal(m.t, e, got[i])
		m.local = append(m.local, e)
	}
	m.turn, m.turns = turn, turns
}

// appendWrong appends what does not fit, behind something that does.
func (m *model) appendWrong() {
	good, _, _ := m.drawEvents()
	wrong := rapid.SampledFrom([]client.Event{
		client.UserSaid("no-turn", "x"), client.UserSaid("turn-1", " "), client.EndTurn("turn-1", "running"),
		{},
		client.StartTurn("turn-1"),
		client.UserSaid("turn-1", strings.Repeat("a", client.MaxContentUnits+1)),
	}).Draw(m.t, "wrong")
	if m.turns == 0 && wrong.Kind == client.TurnStart {
		return
	}
	_, err := m.archive.Append(append(good, wrong)...)
	require.Error(m.t, err)
}

func (m *model) sync() {
	m.drawFaults()
	var err error
	if m.mayCrash(func() { err = m.archive.Sync(context.Background()) }) {
		m.restart()
		return
	}
	require.NoError(m.t, err)
	require.Len(m.t, m.hub.Transcript(m.archive.ID()), len(m.local))
}

// check holds the spool and the hub against what is known. The hub only ever appends.
func (m *model) check() {
	held := (&testBundle{hub: m.hub}).transcript(m.archive.ID())
	require.GreaterOrEqual(m.t, len(held), m.held)
	require.LessOrEqual(m.t, len(held), len(m.local))
	for ; m.held < len(held); m.held++ {
		require.Equal(m.t, m.local[m.held], held[m.held])
	}
	st, err := m.archive.Status()
	require.NoError(m.t, err)
	require.Equal(m.t, len(m.local), st.LastSequence)
	require.LessOrEqual(m.t, st.Acknowledged, len(held), "more is acknowledged than the hub holds")
	require.GreaterOrEqual(m.t, st.Acknowledged, m.highest)
	require.Equal(m.t, st.Acknowledged == len(m.local) && len(m.local) > 0, st.Archived())
	require.Nil(m.t, st.Refusal)
	m.highest = st.Acknowledged
	for _, refusal := range m.hub.Refusals() {
		require.Equal(m.t, "401 unauthorized", refusal)
	}
	require.False(m.t, m.hub.Revoked(m.erp))
}

// Whatever crashes and whatever is lost, nothing that was appended is lost, doubled or out
// of order, and nothing is called acknowledged that the hub does not hold.
func TestNothingIsLostDoubledOrOutOfOrder(t *testing.T) {
	t.Parallel()
	root, checks := t.TempDir(), 0
	rapid.Check(t, func(t *rapid.T) {
		checks++
		dir := filepath.Join(root, strconv.Itoa(checks))
		require.NoError(t, os.Mkdir(dir, 0o700))
		m := newModel(t, dir)
		defer m.close()
		t.Repeat(map[string]func(*rapid.T){
			"append":  func(*rapid.T) { m.append() },
			"wrong":   func(*rapid.T) { m.appendWrong() },
			"sync":    func(*rapid.T) { m.sync() },
			"restart": func(*rapid.T) { m.restart() },
			"":        func(*rapid.T) { m.check() },
		})
		m.mu.Lock()
		m.faults = nil
		m.mu.Unlock()
		require.NoError(t, m.archive.Sync(context.Background()))
		m.check()
		m.restart()
		require.Len(t, stored(t, m.archive), len(m.local))
		require.Len(t, m.hub.Transcript(m.archive.ID()), len(m.local))
	})
}
