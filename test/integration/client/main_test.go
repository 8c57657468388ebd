package client_test

import (
	"os"
	"testing"

	"verbatim.internal/test/integration/internal/kit"
)

func TestMain(m *testing.M) {
	if os.Getenv(agentSpool) != "" {
		os.Exit(beAgent())
	}
	os.Exit(kit.Main(m))
}
