package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"verbatim.internal/services/auditview"
	"verbatim.internal/services/ingest"
)

func newRelay(s streams) *cobra.Command {
	return group("relay", "Watch and repair the way from ingest to auditview", newRelayStatus(s), newRelayCheck(s), newRelayReplay(s), newRelayRebuild(s))
}

func newRelayReplay(s streams) *cobra.Command {
	var (
		stream string
		from   databases
	)
	cmd := &cobra.Command{
		Use:   "replay",
		Short: "Try parked messages again, in order",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dsn, err := from.dsn(auditviewService)
			if err != nil {
				return err
			}
			replayed, parked, err := auditview.ReplayParked(cmd.Context(), dsn, stream)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(s.out, "%d replayed, %d still parked\n", replayed, parked)
			return err
		},
	}
	cmd.Flags().StringVar(&stream, "stream", "", "only this archive, run or registry change, by its id or as kind/id (default: all)")
	from.flag(cmd)
	return cmd
}

func newRelayRebuild(s streams) *cobra.Command {
	var (
		stream string
		from   databases
	)
	cmd := &cobra.Command{
		Use:   "rebuild",
		Short: "Send whole streams again, so that auditview replaces what it has",
		Long: `Ask ingest's relay to send streams whole: all of them, or one. auditview replaces
what it has of a stream; an empty auditview comes back to the same bytes. Appends go
on meanwhile, and a rebuild may be repeated.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dsn, err := from.dsn(ingestService)
			if err != nil {
				return err
			}
			n, err := ingest.Rebuild(cmd.Context(), dsn, stream)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(s.out, "streams to be sent whole: %d (see `verbatim relay status`)\n", n)
			return err
		},
	}
	cmd.Flags().StringVar(&stream, "stream", "", "only the archive, run or registry change of this id (default: all)")
	from.flag(cmd)
	return cmd
}
