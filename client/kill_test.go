package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"verbatim.internal/client"
	"verbatim.internal/client/internal/hubtest"
)

// The environment of a child, which is this program once more.
const (
	childSpool = "VERBATIM_CHILD_SPOOL"
	childHub   = "VERBATIM_CHILD_HUB"
	childStep  = "VERBATIM_CHILD_STEP"  // the name of the step to be killed at, when it is reached first
	childCount = "VERBATIM_CHILD_COUNT" // or the number of the step to be killed at
)

// steps are all that a child passes through, in the order in which it does first.
var steps = []string{
	"exchange: before send", "exchange: answered", "session: before commit", "session: committed",
	"archive: before commit", "archive: committed", "append: before commit", "append: committed",
	"probe: before send", "probe: answered",
	"create: before send", "create: answered", "create: before commit", "create: committed",
	"confirm: before send", "confirm: answered", "confirm: before commit", "confirm: committed",
	"batch: before commit", "batch: committed", "upload: before send", "upload: answered",
	"acknowledgement: before commit", "acknowledgement: committed",
	"rotation: before commit", "rotation: committed", "refresh: before send", "refresh: answered",
	"tokens: before commit", "tokens: committed",
}

// script is what the child's conversation is to be.
func script() []client.Event {
	var events []client.Event
	for i := range 4 {
		events = append(events, turn(fmt.Sprintf("turn-%d", i), 30)...)
	}
	return events
}

// child is an agent: it authorizes what it has no session for, goes on in its script where
// its spool ends, and syncs. It tells each step, and kills itself where it is told to.
func child() int {
	count, last := 0, os.Getenv(childStep)
	limit, _ := strconv.Atoi(os.Getenv(childCount))
	step := func(name string) {
		count++
		_, _ = os.Stdout.WriteString(name + "\n")
		if name == last || count == limit {
			self, _ := os.FindProcess(os.Getpid())
			_ = self.Kill()
			select {}
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := converse(ctx, os.Getenv(childHub), os.Getenv(childSpool), step); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func converse(ctx context.Context, url, path string, step func(string)) error {
	hub, err := client.NewHub(url, client.WithBackoff(time.Millisecond, 5*time.Millisecond))
	if err != nil {
		return err
	}
	spool, err := client.OpenHooked(path, hub, client.Hooks{Step: step})
	if err != nil {
		return err
	}
	erp, err := sessionOf(ctx, spool, "erp-demo", "orders")
	if err != nil {
		return err
	}
	crm, err := sessionOf(ctx, spool, "crm-demo", "customers")
	if err != nil {
		return err
	}
	archive, err := spool.OpenArchive(client.ArchiveSpec{ConversationID: "conversation-1", Members: []client.Member{
		{Session: erp, Route: "orders"}, {Session: crm, Route: "customers"},
	}})
	if err != nil {
		return err
	}
	st, err := archive.Status()
	if err != nil {
		return err
	}
	for events := script()[st.LastSequence:]; len(events) > 0; {
		n := min(25, len(events))
		if _, err := archive.Append(events[:n]...); err != nil {
			return err
		}
		events = events[n:]
	}
	return errors.Join(archive.Sync(ctx), spool.Close())
}

func sessionOf(ctx context.Context, spool *client.Spool, clientAppID, route string) (*client.Session, error) {
	for _, session := range spool.Sessions() {
		if session.ClientAppID() == clientAppID {
			return session, nil
		}
	}
	return spool.Authorize(ctx, client.Authorization{
		ClientAppID: clientAppID, Routes: []string{route}, DeviceLabel: "a device", OpenURL: browse,
	})
}

// browse is the person's browser: it follows the page's redirect.
func browse(ctx context.Context, url string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

// newVictim returns a hub whose erp access tokens end in the middle of the conversation,
// and how a child is run: it tells the steps that it passed, and whether it was killed.
func newVictim(t *testing.T) (*hubtest.Hub, string, func(environ ...string) (passed []string, killed bool)) {
	t.Helper()
	hub := hubtest.Start()
	t.Cleanup(hub.Close)
	hub.SetClock(newClock().now) // it stands still: on a slow machine a lost rotation would come back too late
	var appends atomic.Int32
	hub.OnRequest(func(r *http.Request) hubtest.Fault {
		if strings.HasSuffix(r.URL.Path, "/events") && appends.Add(1) == 2 {
			hub.ExpireAll()
		}
		return hubtest.Fault{}
	})
	path := filepath.Join(t.TempDir(), "spool")
	program, err := os.Executable()
	require.NoError(t, err)
	return hub, path, func(environ ...string) ([]string, bool) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program)
		cmd.Env = append(append(os.Environ(), childSpool+"="+path, childHub+"="+hub.URL), environ...)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		err := cmd.Run()
		var exit *exec.ExitError
		killed := errors.As(err, &exit) && exit.ExitCode() == -1
		if !killed {
			require.NoError(t, err, "%s", &stderr)
		}
		return strings.Split(strings.TrimSpace(stdout.String()), "\n"), killed
	}
}

// checkWhole checks that the hub and the spool hold the script, and nothing else.
func checkWhole(t *testing.T, hub *hubtest.Hub, path string) {
	t.Helper()
	b := &testBundle{hub: hub, path: path, clientHub: newHub(t, hub.URL)}
	b.open(t)
	defer func() { require.NoError(t, b.spool.Close()) }()
	all, err := b.spool.Archives()
	require.NoError(t, err)
	require.Len(t, all, 1, "an archive was opened twice")
	require.True(t, all[0].Archived())
	require.Equal(t, client.Ready, all[0].State)
	archive, err := b.spool.Archive(all[0].ID)
	require.NoError(t, err)
	events := stored(t, archive)
	require.Equal(t, events, b.transcript(all[0].ID))
	want := script()
	require.Len(t, events, len(want))
	for i := range want {
		want[i].ID, want[i].Sequence = events[i].ID, i+1
	}
	require.Equal(t, want, events)
	for _, refusal := range hub.Refusals() {
		require.Equal(t, "401 unauthorized", refusal)
	}
	require.Equal(t, 1, hub.ArchiveCount())
}

// Killed once, at each step there is, an agent that is started again has lost nothing.
func TestKilledAtEachStep(t *testing.T) {
	t.Parallel()
	hub, path, run := newVictim(t)
	passed, killed := run()
	require.False(t, killed)
	checkWhole(t, hub, path)
	var first []string
	for _, name := range passed {
		if !slices.Contains(first, name) {
			first = append(first, name)
		}
	}
	require.Equal(t, steps, first)
	for _, name := range steps {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hub, path, run := newVictim(t)
			_, killed := run(childStep + "=" + name)
			require.True(t, killed)
			_, killed = run()
			require.False(t, killed)
			checkWhole(t, hub, path)
		})
	}
}

// Killed over and over, each time a step later in its life, an agent gets there at last.
func TestKilledAgainAndAgain(t *testing.T) {
	t.Parallel()
	hub, path, run := newVictim(t)
	for n := 1; ; n++ {
		if _, killed := run(childCount + "=" + strconv.Itoa(n)); !killed {
			break
		}
	}
	checkWhole(t, hub, path)
}
