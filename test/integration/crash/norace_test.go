//go:build !race

package crash_test

// backlogRuns is the number of streams of the backlog, with backlogVersions messages
// each: a million.
const backlogRuns = 10_000
