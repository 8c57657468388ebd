package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/spf13/cobra"

	"verbatim.internal/cmd/verbatim/internal/clock"
	"verbatim.internal/services/auditview"
	"verbatim.internal/services/ingest"
)

const (
	// checkPage is how many streams are compared at a time.
	checkPage = 500
	// checkPatience is how long a stream that is behind may stand still before it counts as
	// lost: a message may be on its way. checkPoll is how often it is looked at meanwhile.
	checkPatience, checkPoll = 5 * time.Second, 100 * time.Millisecond
	// checkShown bounds the streams that are named; all are counted.
	checkShown = 100
)

// relayDifference is how auditview differs from ingest.
type relayDifference struct {
	Streams int `json:"streams"` // that ingest has
	// Waiting are behind because ingest has something of them to send, and Parked because
	// auditview could not apply something.
	Waiting int `json:"waiting"`
	Parked  int `json:"parked"`
	// Lost are behind for no such reason: what was sent never came.
	Lost        int               `json:"lost"`
	LostStreams []differingStream `json:"lost_streams"`
	// Ahead are further in auditview than in ingest, or unknown to ingest.
	Ahead        int               `json:"ahead"`
	AheadStreams []differingStream `json:"ahead_streams"`
	Rebuilt      int               `json:"rebuilt"` // lost ones that are sent again, whole
}

// differingStream is one stream on both sides; 0 means that a side has nothing of it.
type differingStream struct {
	Kind      string `json:"stream_kind"`
	ID        string `json:"stream_id"`
	Ingest    int64  `json:"ingest_version"`
	Auditview int64  `json:"auditview_version"`
}

func newRelayCheck(s streams) *cobra.Command {
	var (
		dry, asJSON bool
		from        databases
	)
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Compare both databases and send again what was lost between them",
		Long: `Compare the versions of all streams in ingest's and auditview's databases. A stream that
is behind although nothing of it waits to be sent, and that does not move for five
seconds, was lost on the way: it is sent again, whole, as by ` + "`verbatim relay rebuild`" + `.
Running services ask each other the same every few minutes.

The exit status is 1 when something was lost and --dry-run is given, and when auditview
is ahead of ingest, which happens when an older backup of ingest was restored.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := checkRelay(cmd.Context(), from, dry)
			if err != nil {
				return err
			}
			if err := d.print(s.out, asJSON); err != nil {
				return err
			}
			switch {
			case d.Ahead > 0:
				return errors.New("auditview is ahead of ingest, as when an older backup of ingest was restored: see docs/runbook.md")
			case dry && d.Lost > 0:
				return errors.New("streams were lost; without --dry-run they are sent again")
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "send nothing again")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	from.flag(cmd)
	return cmd
}

// comparison is both databases while they are compared.
type comparison struct {
	ingest    *ingest.Streams
	auditview *auditview.Streams
	found     relayDifference
	suspects  []suspect
}

func checkRelay(ctx context.Context, from databases, dry bool) (relayDifference, error) {
	c := comparison{found: relayDifference{LostStreams: []differingStream{}, AheadStreams: []differingStream{}}}
	dsn, err := from.dsn(ingestService)
	if err != nil {
		return c.found, err
	}
	if c.ingest, err = ingest.OpenStreams(ctx, dsn); err != nil {
		return c.found, err
	}
	defer c.ingest.Close()
	if dsn, err = from.dsn(auditviewService); err != nil {
		return c.found, err
	}
	if c.auditview, err = auditview.OpenStreams(ctx, dsn); err != nil {
		return c.found, err
	}
	defer c.auditview.Close()

	err = c.ingest.Each(ctx, func(page []ingest.Head) error {
		c.found.Streams += len(page)
		left, err := c.look(ctx, page)
		c.suspects = append(c.suspects, left...)
		return err
	})
	if err == nil {
		err = c.unknown(ctx)
	}
	if err == nil {
		err = c.settle(ctx)
	}
	if err == nil && !dry {
		err = c.rebuild(ctx)
	}
	return c.found, err
}

// look compares streams once and returns those that are behind for no reason that is known.
func (c *comparison) look(ctx context.Context, page []ingest.Head) (left []suspect, err error) {
	// What is not waiting now has been sent, up to its head at least: only then is
	// auditview asked how far it is.
	waiting, err := c.ingest.Waiting(ctx, page)
	if err != nil {
		return nil, err
	}
	names := make([]auditview.Stream, len(page))
	for i, h := range page {
		names[i] = streamOf(h)
	}
	states, err := c.auditview.Applied(ctx, names)
	if err != nil {
		return nil, err
	}
	for _, h := range page {
		state := states[streamOf(h)]
		switch {
		case state.Applied > h.Version:
			err = errors.Join(err, c.ahead(ctx, h, state.Applied))
		case state.Applied == h.Version:
		case waiting[ingest.Head{Kind: h.Kind, ID: h.ID}]:
			c.found.Waiting++
		case state.Parked:
			c.found.Parked++
		default:
			left = append(left, suspect{h, state.Applied})
		}
	}
	return left, err
}

// suspect is a stream that is behind.
type suspect struct {
	ingest.Head
	applied int64
}

// settle looks at the suspects until they are not behind any more, or none of them has
// moved for as long as a message may be on its way. Those that are left were lost.
func (c *comparison) settle(ctx context.Context) error {
	tick := time.NewTicker(checkPoll)
	defer tick.Stop()
	for still := clock.Now(); len(c.suspects) > 0 && clock.Now().Sub(still) < checkPatience; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		before := c.suspects
		c.suspects = nil
		for page := range slices.Chunk(before, checkPage) {
			heads := make([]ingest.Head, len(page))
			was := make(map[ingest.Head]int64, len(page))
			for i, s := range page {
				heads[i], was[s.Head] = s.Head, s.applied
			}
			left, err := c.look(ctx, heads)
			if err != nil {
				return err
			}
			for _, s := range left {
				if s.applied != was[s.Head] {
					still = clock.Now()
				}
			}
			c.suspects = append(c.suspects, left...)
		}
		if len(c.suspects) < len(before) {
			still = clock.Now()
		}
	}
	c.found.Lost = len(c.suspects)
	for _, s := range c.suspects {
		c.found.LostStreams = shown(c.found.LostStreams, s.Head, s.applied)
	}
	return nil
}

// rebuild has everything that was lost sent again.
func (c *comparison) rebuild(ctx context.Context) error {
	for page := range slices.Chunk(c.suspects, checkPage) {
		heads := make([]ingest.Head, len(page))
		for i, s := range page {
			heads[i] = s.Head
		}
		if err := c.ingest.Rebuild(ctx, heads); err != nil {
			return err
		}
		c.found.Rebuilt += len(page)
	}
	return nil
}

// ahead counts a stream that auditview knows a later version of, unless ingest has moved.
func (c *comparison) ahead(ctx context.Context, h ingest.Head, applied int64) error {
	versions, err := c.ingest.Stored(ctx, h.Kind, []string{h.ID})
	now := versions[h.ID]
	if err != nil || now >= applied {
		return err
	}
	c.found.Ahead++
	c.found.AheadStreams = shown(c.found.AheadStreams, ingest.Head{Kind: h.Kind, ID: h.ID, Version: now}, applied)
	return nil
}

// unknown looks for streams that auditview has and ingest does not.
func (c *comparison) unknown(ctx context.Context) error {
	kinds, err := c.ingest.Kinds(ctx)
	if err != nil {
		return err
	}
	for _, kind := range kinds {
		for after := ""; ; {
			ids, err := c.auditview.StreamsAfter(ctx, kind, after, checkPage)
			if err != nil {
				return err
			}
			stored, err := c.ingest.Stored(ctx, kind, ids)
			if err != nil {
				return err
			}
			for _, id := range ids {
				after = id
				if stored[id] == 0 {
					c.found.Ahead++
					c.found.AheadStreams = shown(c.found.AheadStreams, ingest.Head{Kind: kind, ID: id}, 1)
				}
			}
			if len(ids) < checkPage {
				break
			}
		}
	}
	return nil
}

func streamOf(h ingest.Head) auditview.Stream { return auditview.Stream{Kind: h.Kind, ID: h.ID} }

func shown(list []differingStream, h ingest.Head, applied int64) []differingStream {
	if len(list) == checkShown {
		return list
	}
	return append(list, differingStream{h.Kind, h.ID, h.Version, applied})
}

func (d relayDifference) print(out io.Writer, asJSON bool) error {
	if asJSON {
		text, err := json.Marshal(d, jsontext.WithIndent("  "))
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "%s\n", text)
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d streams compared; waiting to be sent: %d; parked: %d; lost: %d; ahead: %d; sent again: %d\n",
		d.Streams, d.Waiting, d.Parked, d.Lost, d.Ahead, d.Rebuilt)
	for _, group := range []struct {
		name    string
		streams []differingStream
	}{{"lost", d.LostStreams}, {"ahead", d.AheadStreams}} {
		for _, s := range group.streams {
			fmt.Fprintf(&b, "%s: %s/%s, version %d of %d\n", group.name, s.Kind, s.ID, s.Auditview, s.Ingest)
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}
