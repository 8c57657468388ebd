package kit

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Seed returns where the test's random choices come from: VERBATIM_TEST_SEED, or the
// time. It is logged, so that a failure can be repeated.
func Seed(t *testing.T) uint64 {
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

// Choices returns the n-th sequence of random choices of a seed.
func Choices(seed uint64, n int) *rand.Rand {
	return rand.New(rand.NewPCG(seed, uint64(n)))
}
