package crash_test

import (
	"os"
	"testing"

	"verbatim.internal/test/integration/internal/kit"
)

func TestMain(m *testing.M) { os.Exit(kit.Main(m)) }
