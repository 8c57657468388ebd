package client

import "time"

// Hooks are what tests put into a spool.
type Hooks struct {
	// Step is told where the work stands.
	Step func(name string)
	// Clock replaces the machine's.
	Clock func() time.Time
	// NoSync leaves the fsync out, for crashes that are only played.
	NoSync bool
}

// OpenHooked is OpenSpool with hooks.
func OpenHooked(path string, hub *Hub, hooks Hooks) (*Spool, error) {
	return openSpool(path, hub, func(s *Spool) {
		if hooks.Step != nil {
			s.step = hooks.Step
		}
		s.db.NoSync, s.db.NoGrowSync = hooks.NoSync, hooks.NoSync
		if hooks.Clock != nil {
			s.clock = hooks.Clock
		}
	})
}

// Text and its kin are the rules, for fuzzing.
var (
	IsText       = isText
	IsIdentifier = isIdentifier
	ParseUUID    = parseUUID
)
