package archive

// The contract's limits ("Limits and errors").
const (
	// MaxMembers is the number of members an archive may have.
	MaxMembers = 64
	// MaxBatchEvents is the number of events one append may carry.
	MaxBatchEvents = 50
	// MaxContentUnits is the length of one visible text, in UTF-16 code units.
	MaxContentUnits = 64_000
	// MaxLabelUnits is the length of a member's label, in UTF-16 code units.
	MaxLabelUnits = 128
	// MaxBatchBytes is the text of one append, in bytes of UTF-8.
	MaxBatchBytes = 256 << 10
	// MaxEvents is the number of events an archive may hold, and so the highest sequence.
	MaxEvents = 20_000
	// MaxArchiveBytes is the visible text an archive may hold, in bytes of UTF-8.
	MaxArchiveBytes = 16 << 20
	// MaxSafeInteger is 2^53-1, the largest integer every JSON reader keeps.
	MaxSafeInteger = 1<<53 - 1
)
