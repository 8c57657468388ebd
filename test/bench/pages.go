package main

import (
	"context"
	"fmt"
	"net/http"
	"runtime/pprof"
	"slices"
	"time"
)

// pageSizes are how many records are asked for: as many as without a limit, and the most.
var pageSizes = []int{200, 1000}

// page is one page of a run's audit trace.
type page struct {
	name  string
	path  string
	first string // the id of its first record
	size  int
	last  bool

	latencies []time.Duration // of the round
}

// pages compares the last page of the run with the first. The two take turns, so that
// both have been read before, and nothing that happens meanwhile is only one's.
func (b *bench) pages(ctx context.Context, r *storedRun) ([]pageRow, error) {
	admin, err := dial(ctx, b.both.auditviewURL, adminToken)
	if err != nil {
		return nil, fmt.Errorf("connect to auditview: %w", err)
	}
	defer admin.close()
	var rows []pageRow
	for _, size := range pageSizes {
		both := []*page{newPage("first", r, 0, size), newPage("last", r, r.size-size, size)}
		for _, p := range both {
			if err := p.check(admin); err != nil {
				return nil, fmt.Errorf("the %s page of %d: %w", p.name, size, err)
			}
		}
		rounds := make([][]round, len(both))
		for n := range b.options.rounds {
			b.say("pages of %d records, round %d of %d", size, n+1, b.options.rounds)
			if err := b.pageRound(ctx, admin, both, fmt.Sprintf("pages-%d-%d", size, n+1)); err != nil {
				return nil, err
			}
			for i, p := range both {
				rounds[i] = append(rounds[i], round{latencies: p.latencies})
			}
		}
		for i, p := range both {
			rows = append(rows, newPageRow(r.size, p, rounds[i], rounds[0]))
		}
	}
	return rows, nil
}

func newPage(name string, r *storedRun, cursor, size int) *page {
	return &page{
		name: name, path: fmt.Sprintf("%s?limit=%d&cursor=%d", tracePath, size, cursor),
		first: fmt.Sprintf("aud_%06d", cursor+1), size: size, last: cursor+size == r.size,
	}
}

// check looks whether it is the page that is meant.
func (p *page) check(admin *keptAlive) error {
	var answer struct {
		Records []struct {
			AuditID string `json:"audit_id"`
		} `json:"records"`
		NextCursor *int64 `json:"next_cursor"`
	}
	if err := admin.do(http.MethodGet, p.path, nil, &answer); err != nil {
		return err
	}
	if len(answer.Records) != p.size || answer.Records[0].AuditID != p.first || (answer.NextCursor == nil) != p.last {
		return fmt.Errorf("it is another, of %d records", len(answer.Records))
	}
	return nil
}

func (b *bench) pageRound(ctx context.Context, admin *keptAlive, pages []*page, name string) error {
	for _, p := range pages {
		p.latencies = nil
	}
	profile, err := startProfile(b.options.profiles, name)
	if err != nil {
		return err
	}
	begin := time.Now().Add(b.options.warmup)
	end := begin.Add(b.options.duration)
	pprof.Do(ctx, pprof.Labels("side", "client"), func(context.Context) { err = readPages(admin, pages, begin, end) })
	if err != nil {
		return err
	}
	for _, p := range pages {
		slices.Sort(p.latencies)
	}
	return profile.stop()
}

// readPages reads each page as often as the others, one after the other.
func readPages(admin *keptAlive, pages []*page, begin, end time.Time) error {
	for turn := 0; ; turn++ {
		for k := range pages {
			p := pages[(k+turn)%len(pages)]
			started := time.Now()
			if err := admin.exchange(http.MethodGet, p.path, nil); err != nil {
				return fmt.Errorf("the %s page of %d: %w", p.name, p.size, err)
			}
			if started.After(begin) {
				p.latencies = append(p.latencies, time.Since(started))
			}
		}
		if measured := pages[0].latencies; len(measured) > 0 && time.Now().After(end) {
			return nil
		}
	}
}
