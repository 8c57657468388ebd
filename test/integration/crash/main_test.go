package crash_test

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"verbatim.internal/test/integration/internal/kit"
)

func TestMain(m *testing.M) { os.Exit(kit.Main(m)) }

// newSeed returns where the test's random choices come from.
func newSeed(t *testing.T) uint64 {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("VERBATIM_TEST_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err, "VERBATIM_TEST_SEED is a number")
	}
	t.Logf("VERBATIM_TEST_SEED=%d", seed)
	return seed
}

// choices returns the n-th sequence of random choices of a seed.
func choices(seed uint64, n int) *rand.Rand {
	return rand.New(rand.NewPCG(seed, uint64(n)))
}
