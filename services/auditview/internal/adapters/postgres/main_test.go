package postgres_test

import (
	"flag"
	"os"
	"testing"
)

// Each check of a property has read models of its own in a real database: by default
// there are fewer of them than where everything is in memory.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "40"); err != nil {
		panic(err)
	}
	flag.Parse() // what the command line says counts
	os.Exit(m.Run())
}
