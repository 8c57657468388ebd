package app

import (
	"context"

	"verbatim.internal/pkg/contracts/registryv1"
)

// Bounds of pages of registry changes. A limit of zero means the default.
const (
	DefaultRegistryChanges = 50
	MaxRegistryChanges     = 100
)

// RegistryFilter says which changes are asked for; what is empty excludes none.
type RegistryFilter struct {
	Kind string // a kind of entry
	Name string // an entry's key
}

// RegistryChangePage is a page of changes of the registry, the greatest number first.
type RegistryChangePage struct {
	Changes []registryv1.Change
	HasMore bool
	// NextBefore is the number below which the next page begins, when HasMore.
	NextBefore int64
}

// RegistryStore is the part of ReadStore about changes of the registry.
type RegistryStore interface {
	// RegistryChanges returns at most limit changes whose numbers are below before, the
	// greatest first.
	RegistryChanges(ctx context.Context, filter RegistryFilter, limit int, before int64) ([]registryv1.Change, error)
}

// maxChangeNumber is the greatest number that goes over the wire.
const maxChangeNumber = 1<<53 - 1

// RegistryChanges returns a page of the changes whose numbers are below before; 0 means
// all. Later changes of an entry have greater numbers.
func (r *Reader) RegistryChanges(ctx context.Context, filter RegistryFilter, limit, before int64) (RegistryChangePage, error) {
	n := clamp(limit, DefaultRegistryChanges, MaxRegistryChanges)
	if before == 0 {
		before = maxChangeNumber + 1
	}
	changes, err := r.store.RegistryChanges(ctx, filter, n+1, before)
	if err != nil {
		return RegistryChangePage{}, err
	}
	page := RegistryChangePage{Changes: changes}
	if len(changes) > n {
		page.Changes, page.HasMore = changes[:n], true
		page.NextBefore = changes[n-1].Number
	}
	return page, nil
}
