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
	Visibility []visibility  `json:"visibility,omitempty"`
	Compared   []comparison  `json:"compared,omitempty"`
	Soak       *soak         `json:"soak,omitzero"`
	Footprint  *footprint    `json:"footprint,omitzero"`
	Reads      []readRow     `json:"reads,omitempty"`
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
	Load      string `json:"load"`
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

// compared keeps a comparison.
func (r *report) compared(c comparison, err error) error {
	if err == nil {
		r.Compared = append(r.Compared, c)
	}
	return err
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
		r.printCompared(out),
		r.printVisibility(out),
		r.printSoak(out),
		r.printFootprint(out),
		r.printReads(out),
		r.printPages(out),
		r.printAssembly(out),
	)
}

func (r report) printVisibility(out io.Writer) error {
	if len(r.Visibility) == 0 {
		return nil
	}
	if _, err := fmt.Fprint(out, `
From the acknowledgement of a single event until the admin API shows it, open loop, beside
the append of the same events; in ms. A delay may be one poll too long.

`); err != nil {
		return err
	}
	t := newTable("load", "events", "every", "append p50", "delay p50", "ratio", "append p99", "delay p99", "ratio", "poll p50")
	for _, v := range r.Visibility {
		t.add(v.Load, strconv.Itoa(v.Samples), v.Period, v.AppendP50.String(), v.DelayP50.String(), quotient(v.DelayP50, v.AppendP50),
			v.AppendP99.String(), v.DelayP99.String(), quotient(v.DelayP99, v.AppendP99), v.PollP50.String())
	}
	return t.print(out)
}

func (r report) printReads(out io.Writer) error {
	if len(r.Reads) == 0 {
		return nil
	}
	if _, err := fmt.Fprintf(out, `
Pages of the admin API beside the raw query and the JSON encoding of its rows, in turns; medians (min-max) of %d rounds, in ms.

`, r.Rounds); err != nil {
		return err
	}
	t := newTable("page", "admin API p50", "by hand p50", "ratio")
	for _, p := range r.Reads {
		t.add(p.Page, p.API.Median.String(), p.ByHand.Median.String(), ratio(p.Ratio))
	}
	return t.print(out)
}

func (r report) printSoak(out io.Writer) error {
	s := r.Soak
	if s == nil {
		return nil
	}
	_, err := fmt.Fprintf(out, `
Batches of %d at full speed for %s, %.0f a second: the oldest waiting message was %s ms old in the first minute, %s ms
in the last (medians), which is %s times.
`, soakSize, s.For, s.Batches, s.First, s.Last, quotient(s.Last, s.First))
	return err
}

func (r report) printFootprint(out io.Writer) error {
	f := r.Footprint
	if f == nil {
		return nil
	}
	const mib = 1 << 20
	_, err := fmt.Fprintf(out, `
Both services as processes: %.2f %% of a core when idle; resident memory %d MiB when idle, at most %d MiB while
%d clients sent %d bodies of 2 MiB.
`, 100*f.IdleCPU, f.IdleMemory/mib, f.BusyMemory/mib, bigClients, f.BigBodies)
	return err
}

// quotient is written with two decimals.
func quotient(a, b millis) string { return fmt.Sprintf("%.2f", float64(a)/float64(max(b, 1))) }

func (r report) printCompared(out io.Writer) error {
	if len(r.Compared) == 0 {
		return nil
	}
	if _, err := fmt.Fprintf(out, `
Single events to ingest alone, closed loop: the second workload by the first, medians (min-max) of %d rounds.

`, r.Rounds); err != nil {
		return err
	}
	t := newTable("compared", "first", "second", "throughput", "p50")
	for _, c := range r.Compared {
		t.add(c.What, c.First, c.Second, ratio(c.Throughput), ratio(c.Latency))
	}
	return t.print(out)
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
