package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"verbatim.internal/cmd/verbatim/internal/adminapi"
)

// Pauses of a replay that follows: short while something happens.
const (
	followAtOnce = 200 * time.Millisecond
	followIdle   = 5 * time.Second
)

func newReplay(s streams) *cobra.Command {
	var (
		from   reading
		follow bool
	)
	cmd := &cobra.Command{
		Use:   "replay RUN",
		Short: "Print what an execution did, a line a step",
		Long: `Print the replay of an execution's audit trace: who, when, which sub-agent, with which
resource, did what, approved by whom, with what result. RUN is its swarm id, deployment
id, correlation id, manager deployment id, or the id of its authorization run.
VERBATIM_ADMIN_TOKEN (or …_FILE) holds the token of an administrator.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, run, err := from.open(args[0])
			if err != nil {
				return err
			}
			return replay(cmd.Context(), client, run, follow, s.out, colorful(s.out))
		},
	}
	from.flags(cmd)
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what is stored later, until interrupted")
	return cmd
}

// replay prints the lines of a run, a page at a time. Following, it outlives an auditview
// that is away for a while: the cursor says where it goes on.
func replay(ctx context.Context, client *adminapi.Client, run adminapi.Run, follow bool, out io.Writer, color bool) error {
	pause := followAtOnce
	for cursor := int64(0); ; {
		lines, more, err := client.Replay(ctx, run, cursor)
		switch {
		case ctx.Err() != nil && follow:
			return nil // interrupted, as it is meant to be
		case err != nil && (!follow || cursor == 0 || !passes(err)):
			return err
		}
		for _, line := range lines {
			if _, err := fmt.Fprintln(out, paintResult(line, color)); err != nil {
				return err
			}
		}
		cursor += int64(len(lines))
		if more {
			continue
		}
		if !follow {
			return nil
		}
		if pause = min(2*pause, followIdle); len(lines) > 0 {
			pause = followAtOnce
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// passes reports whether a failure may pass: no answer, or one of a service in trouble.
func passes(err error) bool {
	var answer *adminapi.AnswerError
	var ambiguous *adminapi.AmbiguousError
	if errors.As(err, &ambiguous) {
		return false
	}
	return !errors.As(err, &answer) || answer.Status >= 500 || answer.Status == 429
}

// resultColors are of what the steps came to; info is no news.
var resultColors = map[string]string{"success": "32", "failed": "31", "blocked": "33", "stopped": "35"}

// paintResult colours the result, which ends a line.
func paintResult(line string, color bool) string {
	at := strings.LastIndexByte(line, ' ') + 1
	code, known := resultColors[line[at:]]
	if !color || !known {
		return line
	}
	return line[:at] + "\x1b[" + code + "m" + line[at:] + "\x1b[0m"
}
