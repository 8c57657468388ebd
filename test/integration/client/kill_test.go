package client_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"verbatim.internal/client"
	"verbatim.internal/test/integration/internal/kit"
)

// victim is an agent's process, started and killed again.
type victim struct {
	t    *testing.T
	s    *system
	gate *gate
	pair string
	path string
	cmd  atomic.Pointer[exec.Cmd]
}

func newVictim(t *testing.T, s *system, pair int) *victim {
	t.Helper()
	return &victim{t: t, s: s, gate: newGate(t, s.Deployment), pair: strconv.Itoa(pair), path: filepath.Join(t.TempDir(), "spool")}
}

// live runs the agent until it ends, and reports whether it was killed.
func (v *victim) live() (killed bool) {
	v.t.Helper()
	program, err := os.Executable()
	require.NoError(v.t, err)
	cmd := exec.CommandContext(v.t.Context(), program)
	cmd.Env = append(os.Environ(), agentSpool+"="+v.path, agentHub+"="+v.gate.server.URL, agentPair+"="+v.pair)
	errput, err := cmd.StderrPipe()
	require.NoError(v.t, err)
	require.NoError(v.t, cmd.Start())
	v.cmd.Store(cmd)
	var said [4096]byte
	n, _ := errput.Read(said[:])
	err = cmd.Wait()
	var exit *exec.ExitError
	if killed = errors.As(err, &exit) && exit.ExitCode() == -1; !killed {
		require.NoError(v.t, err, "%s", said[:n])
	}
	return killed
}

// kill kills the agent as kill -9 does; it always returns false.
func (v *victim) kill() bool {
	_ = v.cmd.Load().Process.Kill()
	return false
}

// check checks that administrators read the whole conversation, once and in order.
func (v *victim) check() {
	v.t.Helper()
	hub, err := client.NewHub(v.gate.server.URL)
	require.NoError(v.t, err)
	spool, err := client.OpenSpool(v.path, hub)
	require.NoError(v.t, err)
	defer func() { require.NoError(v.t, spool.Close()) }()
	all, err := spool.Archives()
	require.NoError(v.t, err)
	require.Len(v.t, all, 1)
	require.True(v.t, all[0].Archived())
	require.Equal(v.t, client.Ready, all[0].State)
	archive, err := spool.Archive(all[0].ID)
	require.NoError(v.t, err)
	events, err := archive.Events(0, client.MaxEvents)
	require.NoError(v.t, err)
	var want []kit.Event
	var ids []string
	for _, e := range events {
		ids = append(ids, e.ID)
		want = append(want, kit.Event{
			EventID: e.ID, Sequence: e.Sequence, ClientTurnID: e.TurnID, Kind: string(e.Kind), Content: e.Content,
			Status: string(e.Status), RunID: e.RunID, MemberSessionID: e.MemberSessionID,
		})
	}
	require.Equal(v.t, []string{
		"turn-0:start", "turn-0:user", "turn-0:orders", "turn-0:customers", "turn-0:answer", "turn-0:end",
		"turn-1:start", "turn-1:user", "turn-1:orders", "turn-1:customers", "turn-1:answer", "turn-1:end",
	}, ids)
	detail := v.s.WaitFor(v.t, all[0].HubID, len(want))
	require.Equal(v.t, want, kit.Submitted(detail.Events))
	dsn := v.s.IngestDB.AdminDSN
	require.Equal(v.t, 1, kit.Count(v.t, dsn, `select count(*) from bz_agent_conversation_audits where client_conversation_id = $1`, "conversation-"+v.pair))
	require.Equal(v.t, 4, kit.Count(v.t, dsn, `select count(*) from bz_agent_client_runs where client_conversation_id = $1`, "conversation-"+v.pair))
	require.Equal(v.t, 0, kit.Count(v.t, dsn, `select count(*) from bz_agent_sessions where revoked_at is not null`))
}

// Killed as each kind of request goes out, and again as its answer comes, an agent that is
// started again loses nothing: not an event, not a run, not a session.
func TestKilledAtEachRequest(t *testing.T) {
	t.Parallel()
	s := newSystem(t, 2*len(kinds))
	pair := 0
	for _, kind := range kinds {
		for _, when := range []string{"before", "after"} {
			v := pair
			pair++
			t.Run(kind+" "+when, func(t *testing.T) {
				t.Parallel()
				killedAt(t, s, v, kind, when)
			})
		}
	}
}

func killedAt(t *testing.T, s *system, pair int, kind, when string) {
	t.Helper()
	v := newVictim(t, s, pair)
	var batches, kills atomic.Int32
	once := func(phase, passing string) bool {
		if phase == "before" && passing == "events" && batches.Add(1) == 2 {
			s.expire(t, "crm-"+v.pair, "erp-"+v.pair)
		}
		if phase == when && passing == kind && kills.Add(1) == 1 {
			return v.kill()
		}
		return true
	}
	v.gate.on(func(k string) bool { return once("before", k) }, func(k string) bool { return once("after", k) })
	require.True(t, v.live(), "the request was never made")
	require.False(t, v.live())
	v.check()
}

// Killed at one request after the other, with its access tokens ended at each start, an
// agent gets there at last.
func TestKilledAgainAndAgain(t *testing.T) {
	t.Parallel()
	s := newSystem(t, 2)
	for pair, when := range []string{"before", "after"} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			v := newVictim(t, s, pair)
			var passed, limit atomic.Int32
			count := func(phase string) func(string) bool {
				return func(string) bool {
					return phase != when || passed.Add(1) != limit.Load() || v.kill()
				}
			}
			v.gate.on(count("before"), count("after"))
			for limit.Store(1); v.live(); limit.Add(1) {
				passed.Store(0)
				s.expire(t, "crm-"+v.pair, "erp-"+v.pair)
			}
			v.check()
		})
	}
}
