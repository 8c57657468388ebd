package postgres_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"verbatim.internal/pkg/contracts/cloudevent"
	"verbatim.internal/services/auditview/internal/historytest"
)

// BenchmarkProjection applies batches of 32 appends of 50 events of 1 KB each.
func BenchmarkProjection(b *testing.B) {
	bundle := setup(b)
	texts := make([]string, 48)
	for i := range texts {
		texts[i] = strings.Repeat(fmt.Sprintf("%04d", i), 256)
	}
	events := 0
	n := 0
	for b.Loop() {
		b.StopTimer()
		var batch []cloudevent.Event
		for range 32 {
			a := historytest.NewArchive(b, n, false, historytest.SessionID(0)).Append(texts...)
			n++
			batch = append(batch, a.Messages...)
			events += 50
		}
		body, err := cloudevent.EncodeBatch(batch)
		require.NoError(b, err)
		b.StartTimer()
		received, err := cloudevent.DecodeBatch(body)
		require.NoError(b, err)
		bundle.apply(b, received...)
	}
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
}
