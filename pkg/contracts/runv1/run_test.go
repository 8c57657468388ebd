package runv1_test

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/contracts/runv1"
)

var update = flag.Bool("update", false, "write the golden file")

const path = "testdata/run.json"

func run() runv1.Run {
	return runv1.Run{
		RunID: "223e4567-e89b-42d3-a456-426614174001", SessionID: "123e4567-e89b-42d3-a456-426614174001",
		ClientAppID: "crm-demo", RouteKey: "customers", ThreadID: runv1.MaxThreadID,
		ClientConversationID: "conv-1", ClientTurnID: "turn-1",
		CreatedAt: time.Date(2026, 3, 4, 5, 6, 7, 890123000, time.UTC),
	}
}

func TestRunHasStableBytes(t *testing.T) {
	t.Parallel()
	data, err := runv1.Marshal(run())
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile(path, data, 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(data))
	back, err := runv1.Unmarshal[runv1.Run](want)
	require.NoError(t, err)
	require.Equal(t, run(), back)
}

func TestValidateRefuses(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*runv1.Run){
		"run_id":                 func(r *runv1.Run) { r.RunID = "" },
		"session_id":             func(r *runv1.Run) { r.SessionID = "x" },
		"client_app_id":          func(r *runv1.Run) { r.ClientAppID = "X" },
		"route_key":              func(r *runv1.Run) { r.RouteKey = "" },
		"thread_id":              func(r *runv1.Run) { r.ThreadID = -1 },
		"client_conversation_id": func(r *runv1.Run) { r.ClientConversationID = " " },
		"client_turn_id":         func(r *runv1.Run) { r.ClientTurnID = "" },
		"created_at":             func(r *runv1.Run) { r.CreatedAt = r.CreatedAt.Local().Add(1) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := run()
			change(&r)
			_, err := runv1.Marshal(r)
			var field *runv1.FieldError
			require.ErrorAs(t, err, &field)
			require.Equal(t, name, field.Field)
		})
	}
}

func FuzzUnmarshal(f *testing.F) {
	data, err := os.ReadFile(path)
	require.NoError(f, err)
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := runv1.Unmarshal[runv1.Run](jsontext.Value(data))
		if err != nil {
			return
		}
		again, err := runv1.Marshal(r)
		require.NoError(t, err)
		back, err := runv1.Unmarshal[runv1.Run](again)
		require.NoError(t, err)
		require.Equal(t, r, back)
	})
}
