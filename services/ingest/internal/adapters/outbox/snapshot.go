package outbox

import (
	"context"
	"errors"

	"verbatim.internal/pkg/contracts/archivev1"
	"verbatim.internal/pkg/contracts/cloudevent"
	"verbatim.internal/pkg/contracts/executionv1"
	"verbatim.internal/pkg/contracts/registryv1"
	"verbatim.internal/pkg/contracts/runv1"
	"verbatim.internal/pkg/domain/identity"
)

// ErrNoStream is a stream that is not stored here.
var ErrNoStream = errors.New("no such stream is stored")

// errBroken is a stream whose stored parts contradict each other.
var errBroken = errors.New("the stream's stored parts do not fit together")

// snapshot sends a stream as it stands: its version and header are read
// together under the stream's lock, its events, which never change, after that. What of an
// execution changes is read last, and may be later than the version: see executionv1.
// emit is called once a part, in order. replace marks it as an operator's wish.
func (s *store) snapshot(ctx context.Context, kind, id string, replace bool, trace string, emit func([]cloudevent.Event) error) error {
	if _, ok := identity.ParseUUID(id); !ok {
		return ErrNoStream
	}
	switch kind {
	case archivev1.StreamKind:
		return s.archiveSnapshot(ctx, id, replace, trace, emit)
	case runv1.StreamKind:
		return s.runSnapshot(ctx, id, replace, trace, emit)
	case registryv1.StreamKind:
		return s.changeSnapshot(ctx, id, trace, emit)
	case executionv1.StreamKind:
		return s.executionSnapshot(ctx, id, replace, trace, emit)
	default:
		return ErrNoStream
	}
}

// snapshotType returns the type of a kind's snapshots; an unknown kind's is an archive's,
// which its receiver parks.
func snapshotType(kind string) string {
	switch kind {
	case runv1.StreamKind:
		return runv1.TypeSnapshot
	case registryv1.StreamKind:
		return registryv1.TypeSnapshot
	case executionv1.StreamKind:
		return executionv1.TypeSnapshot
	default:
		return archivev1.TypeSnapshot
	}
}
