package main

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/contracts/httpapi"
	"verbatim.internal/pkg/domain/execution"
)

func TestABatchOfAnExecutionIsWhatIngestTakes(t *testing.T) {
	t.Parallel()
	b := newExecutionBatch(execution.MaxBatch)
	last := 0
	for range 3 {
		b.fill(last)
		last += b.size()
		dto, err := httpapi.DecodeExecutionEvents(b.appendJSON(nil))
		require.NoError(t, err)
		fields := make([]execution.EventFields, len(dto.Events))
		for i, e := range dto.Events {
			fields[i] = execution.EventFields(e)
		}
		batch, err := execution.NewBatch(fields, execution.Attribution{})
		require.NoError(t, err)
		require.Len(t, batch, b.size())
		for i, e := range batch {
			require.EqualValues(t, last-b.size()+i+1, b.positions[i])
			// The floor stores what ingest does.
			require.Equal(t, []string{b.ids[i], b.types[i], b.times[i], b.tasks[i], b.instances[i], b.payloads[i]},
				[]string{e.EventID, e.EventType, e.OccurredAt, e.TaskID, e.AgentInstanceID, string(e.Payload)})
			require.Zero(t, e.DroppedCount)
		}
	}
}

func TestAnExecutionIsLeftBeforeItsLimit(t *testing.T) {
	t.Parallel()
	b := newExecutionBatch(execution.MaxBatch)
	require.True(t, b.fits(execution.MaxEvents-execution.MaxBatch))
	require.False(t, b.fits(execution.MaxEvents-execution.MaxBatch+1))
}

func TestATraceIsTheSameByTheLibrary(t *testing.T) {
	t.Parallel()
	r := newRun(2*traceRepeats + 1)
	var want, got bytes.Buffer
	require.NoError(t, writeByLibrary(t.Context(), r, &want))
	require.NoError(t, writeRecords(t.Context(), r, &got))
	require.Equal(t, want.String(), got.String())
	require.Equal(t, r.size, bytes.Count(got.Bytes(), []byte("\n")))
	require.NoError(t, sameBytes(t.Context(), r, []encoder{{"library", writeByLibrary}, {"records", writeRecords}}))
	nothing := func(context.Context, *storedRun, io.Writer) error { return nil }
	require.Error(t, sameBytes(t.Context(), r, []encoder{{"library", writeByLibrary}, {"nothing", nothing}}))
}

func TestAHeapWriterSeesWhatIsKept(t *testing.T) {
	t.Parallel()
	const size = 64 << 20
	w := newHeapWriter()
	kept := make([]byte, size)
	n, err := w.Write(kept)
	require.NoError(t, err)
	require.Equal(t, size, n)
	require.EqualValues(t, size, w.written)
	require.Greater(t, w.peak(), uint64(size/2)) // other tests may free some meanwhile
}

func TestRowsOfATraceShowRatios(t *testing.T) {
	t.Parallel()
	ms := func(n int) []time.Duration { return []time.Duration{time.Duration(n) * time.Millisecond} }
	first := []round{{latencies: ms(2)}, {latencies: ms(4)}, {latencies: ms(8)}}
	last := []round{{latencies: ms(2)}, {latencies: ms(8)}, {latencies: ms(4)}}
	row := newPageRow(10, &page{name: "last", size: 5}, last, first)
	require.Equal(t, spread[float64]{Median: 1, Min: 0.5, Max: 2}, row.Ratio)
	require.Equal(t, millis(4*time.Millisecond), row.P50.Median)

	base := []pass{{perSecond: 100}, {perSecond: 200}, {perSecond: 300}}
	way := newAssemblyRow(10, "way", []pass{{perSecond: 50, peak: 7}, {perSecond: 200}, {perSecond: 600, written: 9}}, base)
	require.Equal(t, spread[float64]{Median: 1, Min: 0.5, Max: 2}, way.Ratio)
	require.Equal(t, spread[uint64]{Max: 7}, way.Peak)
	require.EqualValues(t, 9, way.Written)
}

func TestATableIsMarkdownThatLinesUp(t *testing.T) {
	t.Parallel()
	table := newTable("page", "of the first")
	table.add("last", "1.00")
	var out strings.Builder
	require.NoError(t, table.print(&out))
	require.Equal(t, "| page | of the first |\n| ---- | ------------ |\n| last | 1.00         |\n", out.String())
}
