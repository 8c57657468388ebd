//go:build race

package crash_test

// backlogRuns is the number of streams of the backlog, with backlogVersions messages
// each. On two cores a million took 34 s (29,000 a second), but 165 s (6,000 a second)
// with the race detector in both services, which therefore get 100,000.
const backlogRuns = 1_000
