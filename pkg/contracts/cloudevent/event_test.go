package cloudevent_test

import (
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/contracts/cloudevent"
)

var update = flag.Bool("update", false, "write the golden file")

const (
	path  = "testdata/batch.json"
	trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
)

func batch() []cloudevent.Event {
	at := time.Date(2026, 3, 4, 5, 6, 7, 890123000, time.UTC)
	first := cloudevent.New("archive", "423e4567-e89b-42d3-a456-426614174001", 7, 0,
		"verbatim.archive.events_appended.v1", at, jsontext.Value(`{"text":"<b>\u00e9 ü","n":[1,2.50]}`))
	first.TraceParent = trace
	part := cloudevent.New("run", "223e4567-e89b-42d3-a456-426614174001", 3, 12, "verbatim.run.snapshot.v1", at, jsontext.Value(`{}`))
	return []cloudevent.Event{first, part}
}

func TestBatchHasStableBytes(t *testing.T) {
	t.Parallel()
	body, err := cloudevent.EncodeBatch(batch())
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile(path, body, 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(body))
	back, err := cloudevent.DecodeBatch(want)
	require.NoError(t, err)
	require.Equal(t, batch(), back)
	require.Equal(t, 0, back[0].Part())
	require.Equal(t, 12, back[1].Part())
}

func TestNoEventsAreABatch(t *testing.T) {
	t.Parallel()
	body, err := cloudevent.EncodeBatch(nil)
	require.NoError(t, err)
	require.Equal(t, "[]", string(body))
	events, err := cloudevent.DecodeBatch(body)
	require.NoError(t, err)
	require.Empty(t, events)
}

func TestDecodeBatchRefusesBodies(t *testing.T) {
	t.Parallel()
	body, err := cloudevent.EncodeBatch(batch())
	require.NoError(t, err)
	for name, body := range map[string]string{
		"nothing":        "",
		"null":           "null",
		"an object":      "{}",
		"trailing data":  string(body) + "x",
		"cut off":        string(body[:len(body)-1]),
		"invalid UTF-8":  strings.Replace(string(body), "ü", "\xff", 1),
		"duplicate name": strings.Replace(string(body), `"id":`, `"id":"x","id":`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := cloudevent.DecodeBatch([]byte(body))
			require.ErrorIs(t, err, cloudevent.ErrBatch)
		})
	}
}

func TestUnknownAttributesArePassedOver(t *testing.T) {
	t.Parallel()
	body, err := cloudevent.EncodeBatch(batch())
	require.NoError(t, err)
	extended := strings.Replace(string(body), `"id":`, `"tracestate":"a=b","id":`, 1)
	events, err := cloudevent.DecodeBatch([]byte(extended))
	require.NoError(t, err)
	require.Equal(t, batch(), events)
}

func TestValidateNamesTheAttribute(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*cloudevent.Event){
		"specversion":     func(e *cloudevent.Event) { e.SpecVersion = "0.3" },
		"source":          func(e *cloudevent.Event) { e.Source = "elsewhere" },
		"datacontenttype": func(e *cloudevent.Event) { e.DataContentType = "text/plain" },
		"type":            func(e *cloudevent.Event) { e.Type = "Created" },
		"subject":         func(e *cloudevent.Event) { e.Subject = "" },
		"streamkind":      func(e *cloudevent.Event) { e.StreamKind = "" },
		"streamid":        func(e *cloudevent.Event) { e.StreamID = "a/b" },
		"streamversion":   func(e *cloudevent.Event) { e.StreamVersion = 0 },
		"id":              func(e *cloudevent.Event) { e.ID += "/0" },
		"time":            func(e *cloudevent.Event) { e.Time = time.Time{} },
		"traceparent":     func(e *cloudevent.Event) { e.TraceParent = "x" },
		"data":            func(e *cloudevent.Event) { e.Data = jsontext.Value(`{`) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			events := batch()
			change(&events[0])
			_, err := cloudevent.EncodeBatch(events)
			var attribute *cloudevent.AttributeError
			require.ErrorAs(t, err, &attribute)
			require.Contains(t, err.Error(), "cloudevent: "+name+" ")
		})
	}
}

func FuzzDecodeBatch(f *testing.F) {
	body, err := os.ReadFile(path)
	require.NoError(f, err)
	f.Add(body)
	f.Fuzz(func(t *testing.T, body []byte) {
		events, err := cloudevent.DecodeBatch(body)
		if err != nil {
			return
		}
		again, err := cloudevent.EncodeBatch(events)
		require.NoError(t, err)
		back, err := cloudevent.DecodeBatch(again)
		require.NoError(t, err)
		require.Len(t, back, len(events))
		for i := range events {
			// White space between the values of data may go; everything else is kept.
			require.NoError(t, events[i].Data.Compact())
			require.Equal(t, events[i], back[i])
		}
	})
}
