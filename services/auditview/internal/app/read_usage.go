package app

import (
	"context"
	"time"
)

// Axes that usage is summed by.
const (
	UsageByUser    = "user"
	UsageByChannel = "channel"
	UsageByClient  = "client"
	UsageByRole    = "role"
	UsageByModel   = "model"
)

// UsageFilter says what usage is asked for.
type UsageFilter struct {
	By    string     // an axis
	Since *time.Time // what was used is counted from it on
	Until *time.Time // and before it
	After string     // keys above it; "" for all
}

// UsageSum is what tasks said that they used. Sums are decimal integers of any size.
type UsageSum struct {
	Key                                               *string // nil: of the tasks that name none
	Tasks                                             int64
	InputTokens, OutputTokens, TotalTokens, ToolCalls string
}

// UsagePage is a page of sums by key; what has no key comes last.
type UsagePage struct {
	Sums    []UsageSum
	HasMore bool
	// Next is the key after which the next page begins, when HasMore.
	Next string
}

// Usage returns a page of what tasks used, by one axis.
func (r *Reader) Usage(ctx context.Context, filter UsageFilter, limit int64) (UsagePage, error) {
	n := clamp(limit, DefaultRecords, MaxRecords)
	sums, err := r.store.Usage(ctx, filter, n+1)
	if err != nil {
		return UsagePage{}, err
	}
	page := UsagePage{Sums: sums}
	if len(sums) > n { // what has no key comes last, so that the n-th has one
		page.Sums, page.HasMore = sums[:n], true
		page.Next = *sums[n-1].Key
	}
	return page, nil
}
