package archive_test

import (
	"fmt"
	"strings"
	"testing"

	"verbatim.internal/pkg/domain/archive"
)

// fullBatch is as many events as one append may carry: one turn of 48 messages
// of about a kilobyte.
func fullBatch() []archive.Fields {
	text := strings.Repeat("0123456789abcde\n", 64)
	fields := []archive.Fields{{Kind: "turn_start"}}
	for range archive.MaxBatchEvents - 2 {
		fields = append(fields, archive.Fields{Kind: "assistant_message", Content: &text})
	}
	fields = append(fields, archive.Fields{Kind: "turn_end", Status: ptr("completed")})
	for i := range fields {
		fields[i].EventID, fields[i].Sequence, fields[i].ClientTurnID = fmt.Sprintf("event-%d", i+1), int64(i+1), "t1"
	}
	return fields
}

func BenchmarkNewBatch(b *testing.B) {
	fields := fullBatch()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := archive.NewBatch(fields); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkArchive_Append applies a full batch, new or repeated as a whole.
func BenchmarkArchive_Append(b *testing.B) {
	batch, err := archive.NewBatch(fullBatch())
	if err != nil {
		b.Fatal(err)
	}
	stored := map[int]archive.Event{}
	for _, e := range batch {
		stored[e.Sequence] = e
	}
	for name, tc := range map[string]struct {
		from archive.Archive
		h    archive.History
		want int
	}{
		"new":   {archive.Archive{}, archive.History{}, len(batch)},
		"retry": {archive.Archive{LastSequence: len(batch)}, archive.History{Stored: stored}, 0},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				a := tc.from
				if fresh, err := a.Append(batch, tc.h, later); err != nil || len(fresh) != tc.want {
					b.Fatalf("%d events are new, %v", len(fresh), err)
				}
			}
		})
	}
}
