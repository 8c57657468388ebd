package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// report is everything that one run measured.
type report struct {
	Started    time.Time     `json:"started"`
	Machine    machine       `json:"machine"`
	Rounds     int           `json:"rounds"`
	Duration   string        `json:"duration"` // of the measured part of a round
	Appends    []appendRow   `json:"appends,omitempty"`
	Executions []appendRow   `json:"executions,omitempty"`
	Visibility *visibility   `json:"visibility,omitzero"`
	Pages      []pageRow     `json:"pages,omitempty"`
	Assembly   []assemblyRow `json:"assembly,omitempty"`
}

// machine is what the numbers were measured on.
type machine struct {
	CPUs       int    `json:"cpus"`
	OS         string `json:"os"`
	Go         string `json:"go"`
	PostgreSQL string `json:"postgresql"`
}

// millis is a duration that is written as milliseconds.
type millis time.Duration

// MarshalJSONTo writes the number of milliseconds.
func (m millis) MarshalJSONTo(enc *jsontext.Encoder) error {
	return enc.WriteToken(jsontext.Float(float64(time.Duration(m).Microseconds()) / 1000))
}

func (m millis) String() string { return fmt.Sprintf("%.2f", float64(m)/float64(time.Millisecond)) }

// spread is the median of the rounds and their extremes.
type spread[T cmp.Ordered] struct {
	Median T `json:"median"`
	Min    T `json:"min"`
	Max    T `json:"max"`
}

// spreadOf returns the zero value for no values.
func spreadOf[T cmp.Ordered](values []T) spread[T] {
	if len(values) == 0 {
		return spread[T]{}
	}
	sorted := slices.Sorted(slices.Values(values))
	return spread[T]{Median: sorted[len(sorted)/2], Min: sorted[0], Max: sorted[len(sorted)-1]}
}

// appendRow is one variant under one load.
type appendRow struct {
	Events  int             `json:"events_per_batch"`
	Clients int             `json:"clients"`
	Variant string          `json:"variant"`
	Batches spread[float64] `json:"batches_per_second"`
	P50     spread[millis]  `json:"p50_ms"`
	P99     spread[millis]  `json:"p99_ms"`
	// Ratio compares the throughput with the floor's of the same round.
	Ratio spread[float64] `json:"of_the_floor"`
	// Visible is the throughput up to the moment when all is visible to administrators.
	Visible *spread[float64] `json:"visible_batches_per_second,omitzero"`
}

// visibility is the delay from an acknowledgement until an administrator sees the event,
// the time of the append itself, and of one request of the administrator.
type visibility struct {
	Samples   int    `json:"samples"`
	Period    string `json:"period"`
	AppendP50 millis `json:"append_p50_ms"`
	AppendP99 millis `json:"append_p99_ms"`
	DelayP50  millis `json:"delay_p50_ms"`
	DelayP99  millis `json:"delay_p99_ms"`
	PollP50   millis `json:"poll_p50_ms"`
}

func newAppendRow(c cell, name string, rounds, base []round) appendRow {
	var rates, ratios, visible []float64
	var p50, p99 []millis
	for i, r := range rounds {
		rates = append(rates, r.perSecond)
		p50, p99 = append(p50, millis(percentile(r.latencies, 50))), append(p99, millis(percentile(r.latencies, 99)))
		if base[i].perSecond > 0 {
			ratios = append(ratios, r.perSecond/base[i].perSecond)
		}
		if r.visiblePerSecond > 0 {
			visible = append(visible, r.visiblePerSecond)
		}
	}
	row := appendRow{
		Events: c.size, Clients: c.clients, Variant: name,
		Batches: spreadOf(rates), P50: spreadOf(p50), P99: spreadOf(p99), Ratio: spreadOf(ratios),
	}
	if s := spreadOf(visible); len(visible) > 0 {
		row.Visible = &s
	}
	return row
}

// print writes the tables for people.
func (r report) print(out io.Writer) error {
	if _, err := fmt.Fprintf(out, "%d CPUs, %s, %s, PostgreSQL %s, fsync on, all on one machine; %s\n",
		r.Machine.CPUs, r.Machine.OS, r.Machine.Go, r.Machine.PostgreSQL, r.Started.UTC().Format(time.DateTime)); err != nil {
		return err
	}
	return errors.Join(
		r.printAppends(out, "Appends", r.Appends),
		r.printAppends(out, "Events of executions", r.Executions),
		r.printVisibility(out),
		r.printPages(out),
		r.printAssembly(out),
	)
}

func (r report) printVisibility(out io.Writer) error {
	v := r.Visibility
	if v == nil {
		return nil
	}
	_, err := fmt.Fprintf(out, `
From the acknowledgement of an event until the admin API shows it; %d events, one every %s, in ms.
  delay   p50 %s  p99 %s
  append  p50 %s  p99 %s  (the same events')
  poll    p50 %s             (one request of the administrator, by which a delay may be too long)
`, v.Samples, v.Period, v.DelayP50, v.DelayP99, v.AppendP50, v.AppendP99, v.PollP50)
	return err
}

func (r report) printAppends(out io.Writer, what string, rows []appendRow) error {
	if len(rows) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(out, `
%s, closed loop: medians (min-max) of %d rounds of %s, interleaved; latencies in ms.
"visible/s" runs until administrators can read all batches that the round appended.

`, what, r.Rounds, r.Duration)
	if err != nil {
		return err
	}
	t := newTable("events", "clients", "variant", "of the floor", "batches/s", "events/s", "p50", "p99", "visible/s")
	for _, a := range rows {
		visible := ""
		if a.Visible != nil {
			visible = whole(*a.Visible)
		}
		t.add(strconv.Itoa(a.Events), strconv.Itoa(a.Clients), a.Variant, ratio(a.Ratio), whole(a.Batches),
			fmt.Sprintf("%.0f", a.Batches.Median*float64(a.Events)), a.P50.Median.String(), a.P99.Median.String(), visible)
	}
	return t.print(out)
}

func ratio(s spread[float64]) string { return fmt.Sprintf("%.2f (%.2f-%.2f)", s.Median, s.Min, s.Max) }

func whole(s spread[float64]) string { return fmt.Sprintf("%.0f (%.0f-%.0f)", s.Median, s.Min, s.Max) }

// write stores the report for programs.
func (r report) write(path string) error {
	body, err := json.Marshal(r, jsontext.Multiline(true))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, append(body, '\n'), 0o644)
}
