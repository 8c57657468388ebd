package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// report is everything that one run measured.
type report struct {
	Appends    []appendRow `json:"appends"`
	Visibility visibility  `json:"visibility"`
}

// millis is a duration that is written as milliseconds.
type millis time.Duration

// MarshalJSONTo writes the number of milliseconds.
func (m millis) MarshalJSONTo(enc *jsontext.Encoder) error {
	return enc.WriteToken(jsontext.Float(float64(time.Duration(m).Microseconds()) / 1000))
}

// String rounds to hundredths of a millisecond.
func (m millis) String() string { return time.Duration(m).Round(10 * time.Microsecond).String() }

// figures are the median over rounds, with the extremes of the throughput.
type figures struct {
	PerSecond float64 `json:"per_second"`
	Min       float64 `json:"min_per_second"`
	Max       float64 `json:"max_per_second"`
	P50       millis  `json:"p50_ms"`
	P99       millis  `json:"p99_ms"`
}

// appendRow is one cell of the table: the floor, Verbatim, and their ratio.
type appendRow struct {
	Batch    int     `json:"events_per_batch"`
	Clients  int     `json:"clients"`
	Floor    figures `json:"floor"`
	Verbatim figures `json:"verbatim"`
	// Ratio is the median of the rounds' own ratios: each round runs both, side by side.
	Ratio float64 `json:"ratio"`
}

// visibility is the delay from an acknowledgement until the admin API shows the event.
type visibility struct {
	Samples   int    `json:"samples"`
	AppendP50 millis `json:"append_p50_ms"`
	AppendP99 millis `json:"append_p99_ms"`
	DelayP50  millis `json:"delay_p50_ms"`
	DelayP99  millis `json:"delay_p99_ms"`
}

func newAppendRow(batch, clients int, floor, verbatim []round) appendRow {
	ratios := make([]float64, len(floor))
	for i := range floor {
		ratios[i] = verbatim[i].perSecond / floor[i].perSecond
	}
	return appendRow{Batch: batch, Clients: clients, Floor: newFigures(floor), Verbatim: newFigures(verbatim), Ratio: median(ratios)}
}

func newFigures(rounds []round) figures {
	var rates []float64
	var p50, p99 []time.Duration
	for _, r := range rounds {
		rates = append(rates, r.perSecond)
		p50, p99 = append(p50, percentile(r.latencies, 50)), append(p99, percentile(r.latencies, 99))
	}
	f := figures{PerSecond: median(rates), P50: millis(median(p50)), P99: millis(median(p99))}
	f.Min, f.Max = rates[0], rates[len(rates)-1]
	return f
}

func (r report) print(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	if len(r.Appends) > 0 {
		fmt.Fprintln(table, "events\tclients\tfloor/s\tverbatim/s\t(min-max)\tp50\tp99\tof the floor\t")
		for _, a := range r.Appends {
			fmt.Fprintf(table, "%d\t%d\t%.0f\t%.0f\t(%.0f-%.0f)\t%s\t%s\t%.2f\t\n", a.Batch, a.Clients, a.Floor.PerSecond,
				a.Verbatim.PerSecond, a.Verbatim.Min, a.Verbatim.Max, a.Verbatim.P50, a.Verbatim.P99, a.Ratio)
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if v := r.Visibility; v.Samples > 0 {
		_, err := fmt.Fprintf(out, "\nvisible after the acknowledgement: p50 %s, p99 %s (the append itself: p50 %s, p99 %s; %d samples)\n",
			v.DelayP50, v.DelayP99, v.AppendP50, v.AppendP99, v.Samples)
		return err
	}
	return nil
}

func (r report) write(dir string) error {
	body, err := json.Marshal(r, jsontext.Multiline(true))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "bench.json"), append(body, '\n'), 0o644)
}
