package integration_test

import (
	"testing"

	"verbatim.internal/test/integration/internal/kit"
)

const archiveVectors = "testdata/conversation-archive.json"

// Each case gets a fresh deployment, joined in process.
func TestArchiveVectors(t *testing.T) {
	t.Parallel()
	vectors := kit.ReadVectors(t, archiveVectors)
	for _, c := range vectors.Cases {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			c.Run(t, kit.Start(t, kit.Options{Registry: vectors.Registry}))
		})
	}
}

// All cases share one deployment, joined by the http transport: no case may depend
// on being the first, nor disturb another one.
func TestArchiveVectorsOverHTTPTransport(t *testing.T) {
	t.Parallel()
	vectors := kit.ReadVectors(t, archiveVectors)
	d := kit.Start(t, kit.Options{Registry: vectors.Registry, HTTP: true})
	for _, c := range vectors.Cases {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			c.Run(t, d)
		})
	}
}
