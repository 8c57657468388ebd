package main

import (
	"fmt"
	"io"
	"strconv"
)

// pageRow is one page of the run's trace.
type pageRow struct {
	Events  int            `json:"events"` // of the run
	Page    string         `json:"page"`
	Records int            `json:"records"` // of the page
	P50     spread[millis] `json:"p50_ms"`
	P99     spread[millis] `json:"p99_ms"`
	// Ratio compares the median time with the first page's of the same round.
	Ratio spread[float64] `json:"of_the_first"`
}

func newPageRow(events int, p *page, rounds, base []round) pageRow {
	var p50, p99 []millis
	var ratios []float64
	for i, r := range rounds {
		p50, p99 = append(p50, millis(percentile(r.latencies, 50))), append(p99, millis(percentile(r.latencies, 99)))
		if first := percentile(base[i].latencies, 50); first > 0 {
			ratios = append(ratios, float64(percentile(r.latencies, 50))/float64(first))
		}
	}
	return pageRow{Events: events, Page: p.name, Records: p.size, P50: spreadOf(p50), P99: spreadOf(p99), Ratio: spreadOf(ratios)}
}

// assemblyRow is one way to write the whole trace.
type assemblyRow struct {
	Events  int             `json:"events"` // of the run
	Way     string          `json:"way"`
	Records spread[float64] `json:"records_per_second"`
	// Ratio compares the time with the JSON library's of the same round.
	Ratio spread[float64] `json:"times_the_library"`
	// Peak is what the heap had at most, what was not yet collected included, above what
	// was in use before.
	Peak    spread[uint64] `json:"peak_heap_bytes"`
	Written int64          `json:"written_bytes"`
}

func newAssemblyRow(events int, way string, passes, base []pass) assemblyRow {
	row := assemblyRow{Events: events, Way: way}
	var rates, ratios []float64
	var peaks []uint64
	for i, p := range passes {
		rates, peaks = append(rates, p.perSecond), append(peaks, p.peak)
		ratios = append(ratios, base[i].perSecond/p.perSecond)
		row.Written = p.written
	}
	row.Records, row.Ratio, row.Peak = spreadOf(rates), spreadOf(ratios), spreadOf(peaks)
	return row
}

func mebibytes[T int64 | uint64](bytes T) string { return fmt.Sprintf("%.1f", float64(bytes)/(1<<20)) }

func (r report) printAssembly(out io.Writer) error {
	if len(r.Assembly) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(out, `
The audit trace of a run of %d events, written as JSON, one record a line, on one core (PostgreSQL on any);
medians (min-max) of %d rounds, interleaved. "Peak" is of the heap, with what is not collected yet, above what was in use before.

`, r.Assembly[0].Events, r.Rounds)
	if err != nil {
		return err
	}
	t := newTable("records", "times the library's time", "records/s", "peak MiB", "written MiB")
	for _, a := range r.Assembly {
		t.add(a.Way, ratio(a.Ratio), whole(a.Records), mebibytes(a.Peak.Median)+" ("+mebibytes(a.Peak.Min)+"-"+mebibytes(a.Peak.Max)+")", mebibytes(a.Written))
	}
	return t.print(out)
}

func (r report) printPages(out io.Writer) error {
	if len(r.Pages) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(out, `
Pages of the audit trace of a run of %d events through the admin API, one administrator; medians (min-max) of %d rounds of %s,
interleaved; in ms.

`, r.Pages[0].Events, r.Rounds, r.Duration)
	if err != nil {
		return err
	}
	t := newTable("page", "records", "of the first", "p50", "p99")
	for _, p := range r.Pages {
		t.add(p.Page, strconv.Itoa(p.Records), ratio(p.Ratio), p.P50.Median.String(), p.P99.Median.String())
	}
	return t.print(out)
}
