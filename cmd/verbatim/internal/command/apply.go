package command

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"verbatim.internal/services/ingest"
)

// maxFile is more than any registry needs; a device or a log named by mistake is more than that.
const maxFile = 64 << 20

func newApply(s streams) *cobra.Command {
	var (
		file string
		from databases
	)
	cmd := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Apply a registry of clients, routes, sessions, runs and controllers",
		Long: `Apply a registry (YAML or JSON) in one transaction: what is new is created, what
differs is updated, what the file does not name stays. Prints what changed. A token
that the file does not give is generated and printed once; only its hash is stored.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			content, err := readFile(s.in, file)
			if err != nil {
				return err
			}
			dsn, err := from.dsn(ingestService)
			if err != nil {
				return err
			}
			result, err := ingest.Apply(cmd.Context(), dsn, content)
			if err != nil {
				return err
			}
			return printRegistry(s.out, result)
		},
	}
	fileFlag(cmd, &file)
	from.flag(cmd)
	return cmd
}

func fileFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVarP(file, "file", "f", "", "the file to apply; - reads standard input")
	_ = cmd.MarkFlagRequired("file")
}

// readFile reads an operator's file, - being standard input.
func readFile(in io.Reader, path string) ([]byte, error) {
	if path != "-" {
		f, err := os.Open(path) //nolint:gosec // the operator names the file: that is the flag's purpose
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	content, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(content) > maxFile {
		return nil, fmt.Errorf("%s is larger than 64 MiB", path)
	}
	return content, nil
}

// change is one line of an apply's result.
type change struct {
	kind, name, action string
	fields             []string
}

// generated is a token that the file did not give.
type generated struct{ kind, name, value string }

// printChanges prints what an apply changed, what of it has no effect, and each
// generated token once.
func printChanges(out io.Writer, changes []change, tokens []generated, warnings ...string) error {
	var b strings.Builder
	unchanged := 0
	for _, c := range changes {
		if c.action == "unchanged" {
			unchanged++
			continue
		}
		fmt.Fprintf(&b, "%s %s %s", c.kind, c.name, c.action)
		if c.action == "updated" && len(c.fields) > 0 {
			fmt.Fprintf(&b, " (%s)", strings.Join(c.fields, ", "))
		}
		b.WriteByte('\n')
	}
	if unchanged > 0 || len(changes) == 0 {
		fmt.Fprintf(&b, "%d unchanged\n", unchanged)
	}
	for _, w := range warnings {
		fmt.Fprintf(&b, "warning: %s\n", w)
	}
	for _, t := range tokens {
		fmt.Fprintf(&b, "token of %s %s, shown only now: %s\n", t.kind, t.name, t.value)
	}
	_, err := io.WriteString(out, b.String())
	return err
}
