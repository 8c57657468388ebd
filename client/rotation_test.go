package client_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"verbatim.internal/client/internal/hubtest"
)

// What a proxy asks for in Retry-After is no reason to come too late.
func TestALostRotationIsNotRepeatedAfterALongPause(t *testing.T) {
	t.Parallel()
	for name, asleep := range map[string]time.Duration{"the pause is long": 0, "the machine slept": 20 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, c := clocked(t)
			c.advance(700 * time.Second)
			var asked atomic.Int32
			b.hub.OnRequest(func(r *http.Request) hubtest.Fault {
				switch {
				case !strings.HasSuffix(r.URL.Path, "/token"):
				case asked.Add(1) == 1:
					return hubtest.Fault{Lost: true, Done: true}
				case asleep > 0:
					time.AfterFunc(500*time.Millisecond, func() { c.advance(asleep) })
					return hubtest.Fault{Status: 503, RetryAfter: "1"}
				default:
					return hubtest.Fault{Status: 503, RetryAfter: "30"}
				}
				return hubtest.Fault{}
			})
			info(t, b.erp) // with the old token
			require.EqualValues(t, 2, asked.Load())
			b.hub.OnRequest(nil)
			c.advance(15 * time.Second)
			info(t, b.erp)
			require.False(t, b.hub.Revoked(b.erp.ID()))
		})
	}
}

// Nor is a slow way a reason: what is sent in time has to come in time.
func TestALostRotationIsNotRepeatedSoThatItMayComeTooLate(t *testing.T) {
	t.Parallel()
	b, c := clocked(t)
	c.advance(700 * time.Second)
	b.hub.OnRequest(func(r *http.Request) hubtest.Fault {
		if strings.HasSuffix(r.URL.Path, "/token") {
			c.advance(7500 * time.Millisecond)
			return hubtest.Fault{Lost: true, Done: true}
		}
		return hubtest.Fault{}
	})
	info(t, b.erp) // with the old token
	require.Equal(t, 2, rotations(b))
}
