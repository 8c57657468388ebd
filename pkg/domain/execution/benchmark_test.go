package execution_test

import (
	"strconv"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"verbatim.internal/pkg/domain/execution"
)

// A full batch of events as orchestrators send them.
func BenchmarkNewBatch(b *testing.B) {
	fields := make([]execution.EventFields, execution.MaxBatch)
	for i := range fields {
		fields[i] = eventFields("event-" + strconv.Itoa(i))
		fields[i].Payload = jsontext.Value(`{"to_status":"running","attempt":1,"duration_ms":120,"approval_id":"ap-1","prompt":"dropped"}`)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := execution.NewBatch(fields, nobody); err != nil {
			b.Fatal(err)
		}
	}
}
