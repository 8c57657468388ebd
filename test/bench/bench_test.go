package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/contracts/httpapi"
	"verbatim.internal/pkg/domain/archive"
)

func TestABatchIsWhatIngestTakes(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, archive.MaxBatchEvents} {
		b := newBatch(size)
		last, total := 0, 0
		for range 3 {
			total += b.fill(last)
			last += size
			decoded, err := httpapi.DecodeAppend(b.appendJSON(nil))
			require.NoError(t, err)
			require.Len(t, decoded.Events, size)
			for i, e := range decoded.Events {
				require.EqualValues(t, last-size+i+1, e.Sequence)
				require.Equal(t, b.contents[i], e.Content)
				require.Equal(t, b.statuses[i], e.Status)
			}
		}
		require.Positive(t, total)
	}
	require.InDelta(t, 1000, len(text), 50)
}

func TestAnArchiveIsLeftBeforeItsLimits(t *testing.T) {
	t.Parallel()
	b := newBatch(archive.MaxBatchEvents)
	require.True(t, b.fits(archive.MaxEvents-archive.MaxBatchEvents, 0))
	require.False(t, b.fits(archive.MaxEvents-archive.MaxBatchEvents+1, 0))
	require.False(t, b.fits(0, archive.MaxArchiveBytes-len(text)))
}

func TestAReportShowsMediansAndExtremes(t *testing.T) {
	t.Parallel()
	base := []round{{perSecond: 100}, {perSecond: 400}, {perSecond: 200}}
	rounds := []round{{perSecond: 50}, {perSecond: 100}, {perSecond: 150, visiblePerSecond: 10}}
	row := newAppendRow(cell{50, 16}, "v", rounds, base)
	require.Equal(t, spread[float64]{Median: 100, Min: 50, Max: 150}, row.Batches)
	require.Equal(t, spread[float64]{Median: 0.5, Min: 0.25, Max: 0.75}, row.Ratio)
	require.Equal(t, &spread[float64]{Median: 10, Min: 10, Max: 10}, row.Visible)
}

func TestPercentiles(t *testing.T) {
	t.Parallel()
	var sorted []time.Duration
	require.Zero(t, percentile(sorted, 99))
	for i := range 100 {
		sorted = append(sorted, time.Duration(i+1))
	}
	require.Equal(t, time.Duration(51), percentile(sorted, 50))
	require.Equal(t, time.Duration(100), percentile(sorted, 99))
}

func TestFlagsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-only", "appends"}, {"-rounds", "0"}, {"-duration", "0s"}, {"-events", "999"}, {"-events", "1000001"}} {
		_, err := parse(args)
		require.Error(t, err, args)
	}
	o, err := parse([]string{"-only", "visibility", "-smoke"})
	require.NoError(t, err)
	for _, part := range parts {
		require.Equal(t, part == partVisibility, o.measures(part), part)
	}
}
