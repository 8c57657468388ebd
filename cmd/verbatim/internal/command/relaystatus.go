package command

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"verbatim.internal/cmd/verbatim/internal/clock"
	"verbatim.internal/services/auditview"
	"verbatim.internal/services/ingest"
)

// relayState is both ends of the relay, as they stand.
type relayState struct {
	Waiting []waitingPartition `json:"waiting"` // partitions with rows to send
	Streams int64              `json:"streams"` // known to auditview
	Parked  []parkedStream     `json:"parked"`
}

type waitingPartition struct {
	Partition int       `json:"partition"`
	Rows      int64     `json:"rows"`
	Oldest    time.Time `json:"oldest"`
}

type parkedStream struct {
	Kind        string    `json:"stream_kind"`
	ID          string    `json:"stream_id"`
	FromVersion int64     `json:"from_version"`
	ToVersion   int64     `json:"to_version"`
	Messages    int64     `json:"messages"`
	Since       time.Time `json:"since"`
	Error       string    `json:"error"`
}

func newRelayStatus(s streams) *cobra.Command {
	var (
		asJSON bool
		from   databases
	)
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show what waits to be sent and what is parked",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			state, err := readRelayState(cmd.Context(), from)
			if err != nil {
				return err
			}
			if asJSON {
				text, err := json.Marshal(state, jsontext.WithIndent("  "))
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(s.out, "%s\n", text)
				return err
			}
			return state.print(s.out, clock.Now())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	from.flag(cmd)
	return cmd
}

func readRelayState(ctx context.Context, from databases) (relayState, error) {
	state := relayState{Waiting: []waitingPartition{}, Parked: []parkedStream{}}
	dsn, err := from.dsn(ingestService)
	if err != nil {
		return state, err
	}
	waiting, err := ingest.RelayStatus(ctx, dsn)
	if err != nil {
		return state, err
	}
	for _, w := range waiting {
		state.Waiting = append(state.Waiting, waitingPartition(w))
	}
	if dsn, err = from.dsn(auditviewService); err != nil {
		return state, err
	}
	relay, err := auditview.RelayStatus(ctx, dsn)
	if err != nil {
		return state, err
	}
	state.Streams = relay.Streams
	for _, p := range relay.Parked {
		state.Parked = append(state.Parked, parkedStream{p.Kind, p.ID, p.FromVersion, p.ToVersion, p.Count, p.Since, p.Error})
	}
	return state, nil
}

// print writes two small tables, or what there is to say when they are empty.
func (r relayState) print(out io.Writer, now time.Time) error {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	var rows int64
	for _, w := range r.Waiting {
		rows += w.Rows
	}
	fmt.Fprintf(&b, "streams known to auditview: %d; messages waiting: %d; streams parked: %d\n", r.Streams, rows, len(r.Parked))
	if len(r.Waiting) > 0 {
		fmt.Fprintln(table, "\nPARTITION\tWAITING\tOLDEST")
		for _, w := range r.Waiting {
			fmt.Fprintf(table, "%d\t%d\t%s ago\n", w.Partition, w.Rows, max(0, now.Sub(w.Oldest)).Round(100*time.Millisecond))
		}
	}
	if len(r.Parked) > 0 {
		fmt.Fprintln(table, "\nSTREAM\tVERSIONS\tMESSAGES\tSINCE\tERROR")
		for _, p := range r.Parked {
			fmt.Fprintf(table, "%s/%s\t%d-%d\t%d\t%s\t%s\n", p.Kind, p.ID, p.FromVersion, p.ToVersion, p.Messages,
				p.Since.UTC().Format(time.RFC3339), strings.Join(strings.Fields(p.Error), " "))
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(out, b.String())
	return err
}
