// Package system gives the service its clock and its randomness.
package system

import (
	"time"

	"github.com/google/uuid"

	"verbatim.internal/pkg/domain/identity"
)

// Clock implements app.Clock with the machine's clock.
type Clock struct{}

// Now implements app.Clock.
func (Clock) Now() time.Time {
	return time.Now().UTC().Truncate(time.Microsecond) //nolint:forbidigo // this is the clock
}

// IDs implements app.IDs with the machine's randomness.
type IDs struct{}

// NewUUID implements app.IDs.
func (IDs) NewUUID() identity.UUID { return identity.UUID(uuid.NewString()) }
