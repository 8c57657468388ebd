package command

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/platform/config"
)

func TestSentenceIsOneLine(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "the configuration is invalid: A is missing; B is malformed",
		sentence(errors.New("the configuration is invalid:\n  A is missing\n  B is malformed\n")))
	assert.Equal(t, "connect: refused", sentence(errors.New("connect: \n\trefused\n\trefused")))
	assert.Equal(t, "one; two", sentence(errors.Join(errors.New("one"), errors.New("two"))))
}

func TestPrintChanges(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	require.NoError(t, printChanges(&out, []change{
		{kind: "client", name: "a", action: "created", fields: []string{"name"}},
		{kind: "route", name: "b", action: "updated", fields: []string{"audience", "enabled"}},
		{kind: "session", name: "c", action: "unchanged"},
		{kind: "session", name: "d", action: "unchanged"},
	}, []generated{{kind: "client", name: "a", value: "bhk_x"}}, "one thing has no effect"))
	assert.Equal(t, strings.Join([]string{
		"client a created",
		"route b updated (audience, enabled)",
		"2 unchanged",
		"warning: one thing has no effect",
		"token of client a, shown only now: bhk_x",
		"",
	}, "\n"), out.String())
}

func TestRelayTable(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var out bytes.Buffer
	require.NoError(t, relayState{Streams: 2}.print(&out, now))
	assert.Equal(t, "streams known to auditview: 2; messages waiting: 0; streams parked: 0\n", out.String())
	out.Reset()
	state := relayState{
		Streams: 3,
		Waiting: []waitingPartition{{3, 12, now.Add(-1500 * time.Millisecond)}, {15, 1, now.Add(-time.Minute)}},
		Parked:  []parkedStream{{"archive", "423e", 4, 7, 4, now.Add(-time.Hour), "the message\nis no JSON"}},
	}
	require.NoError(t, state.print(&out, now))
	assert.Equal(t, strings.Join([]string{
		"streams known to auditview: 3; messages waiting: 13; streams parked: 1",
		"",
		"PARTITION  WAITING  OLDEST",
		"3          12       1.5s ago",
		"15         1        1m0s ago",
		"",
		"STREAM        VERSIONS  MESSAGES  SINCE                 ERROR",
		"archive/423e  4-7       4         2026-01-02T02:04:05Z  the message is no JSON",
		"",
	}, "\n"), out.String())
}

func TestBootstrapTakesEachPasswordFromItsConnectionString(t *testing.T) {
	t.Parallel()
	const at = "@db.example.com/verbatim_ingest"
	v := dsnVariables{
		IngestOwner: config.Secret("postgres://verbatim_ingest_owner:a" + at),
		Ingest:      config.Secret("postgres://verbatim_ingest:b" + at),
	}
	ingest, auditview := services[0], services[1]
	passwords, err := ingest.passwords(v)
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"verbatim_ingest_owner": "a", "verbatim_ingest": "b"}, passwords)
	passwords, err = auditview.passwords(v)
	require.NoError(t, err)
	assert.Empty(t, passwords)

	v = dsnVariables{
		IngestOwner:  config.Secret("postgres://postgres:hush" + at),
		Ingest:       config.Secret("postgres://verbatim_ingest:hush@db.example.com/other"),
		IngestReader: config.Secret("hush://"),
	}
	_, err = ingest.passwords(v)
	require.ErrorContains(t, err, "VERBATIM_INGEST_OWNER_DSN must connect as the role verbatim_ingest_owner to the database verbatim_ingest")
	require.ErrorContains(t, err, "VERBATIM_INGEST_DSN must connect as")
	require.ErrorContains(t, err, "VERBATIM_INGEST_READER_DSN is no connection string")
	assert.NotContains(t, err.Error(), "hush")
}

func TestChosen(t *testing.T) {
	t.Parallel()
	both, err := chosen("")
	require.NoError(t, err)
	assert.Len(t, both, 2)
	one, err := chosen("auditview")
	require.NoError(t, err)
	assert.Equal(t, "auditview", one[0].name)
	_, err = chosen("console")
	require.EqualError(t, err, "--only takes ingest or auditview")
}

func TestReadFileBoundsWhatItReads(t *testing.T) {
	t.Parallel()
	content, err := readFile(strings.NewReader("clients: []"), "-")
	require.NoError(t, err)
	assert.Equal(t, "clients: []", string(content))
	_, err = readFile(endless{}, "-")
	require.ErrorContains(t, err, "larger than 64 MiB")
}

// endless is what /dev/zero is.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }
