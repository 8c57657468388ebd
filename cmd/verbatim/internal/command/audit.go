package command

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"verbatim.internal/cmd/verbatim/internal/adminapi"
	"verbatim.internal/pkg/contracts/httpapi"
	"verbatim.internal/pkg/domain/trace"
)

func newAudit(s streams) *cobra.Command {
	var (
		from   reading
		format string
	)
	formats := map[string]func(context.Context, *adminapi.Client, adminapi.Run, *bufio.Writer) error{
		"json": auditJSON, "ndjson": auditNDJSON, "csv": auditCSV,
	}
	cmd := &cobra.Command{
		Use:   "audit RUN",
		Short: "Export the audit trace of an execution",
		Long: `Write the whole audit trace of an execution, all of one moment: json is one document,
ndjson the frozen records, one a line, byte for byte as auditview serves them, csv a table
of the same. RUN and the token are those of verbatim replay. A trace that breaks off is an
error, with exit code 1.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			write, ok := formats[format]
			if !ok {
				return errors.New("--format takes json, ndjson or csv")
			}
			client, run, err := from.open(args[0])
			if err != nil {
				return err
			}
			out := bufio.NewWriter(s.out)
			if err := write(cmd.Context(), client, run, out); err != nil {
				return errors.Join(err, out.Flush())
			}
			return out.Flush()
		},
	}
	from.flags(cmd)
	cmd.Flags().StringVar(&format, "format", "json", "json, ndjson or csv")
	return cmd
}

func auditNDJSON(ctx context.Context, client *adminapi.Client, run adminapi.Run, out *bufio.Writer) error {
	return client.Records(ctx, run, func(record []byte) error {
		_, _ = out.Write(record) // the writer keeps its first error
		return out.WriteByte('\n')
	})
}

func auditJSON(ctx context.Context, client *adminapi.Client, run adminapi.Run, out *bufio.Writer) error {
	lineage, err := client.Lineage(ctx, run)
	if err != nil {
		return err
	}
	ids, err := json.Marshal(lineage)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, `{"schema":%q,"lineage":%s,"records":[`, httpapi.SchemaAuditTrace, ids)
	separator := "\n"
	err = client.Records(ctx, run, func(record []byte) error {
		_, _ = out.WriteString(separator)
		separator = ",\n"
		_, err := out.Write(record)
		return err
	})
	if err != nil {
		return err
	}
	_, err = out.WriteString("\n]}\n")
	return err
}

var csvHeader = []string{
	"audit_id", "occurred_at", "action", "agent_role", "agent_instance_id", "task_id", "model_id", "tool_count",
	"approval_id", "decision", "result", "manager_deployment_id", "deployment_id", "swarm_id", "correlation_id",
}

// auditCSV writes a table whose values are identifiers and times: none begins as a
// spreadsheet's formula does. What is null is empty.
func auditCSV(ctx context.Context, client *adminapi.Client, run adminapi.Run, out *bufio.Writer) error {
	table := csv.NewWriter(out)
	if err := table.Write(csvHeader); err != nil {
		return err
	}
	err := client.Records(ctx, run, func(record []byte) error {
		var r trace.Record
		if err := json.Unmarshal(record, &r, json.RejectUnknownMembers(true)); err != nil {
			return errors.New("a record is not of the frozen schema")
		}
		return table.Write(row(r))
	})
	table.Flush()
	return errors.Join(err, table.Error())
}

func row(r trace.Record) []string {
	var model, tools, approval, decision string
	if r.Model != nil {
		model = r.Model.ModelID
	}
	if r.Tool != nil {
		tools = strconv.FormatInt(r.Tool.Count, 10)
	}
	if r.Approval != nil {
		approval, decision = r.Approval.ApprovalID, word(r.Approval.Decision)
	}
	return []string{
		r.AuditID.String(), r.OccurredAt, r.Action, word(r.Actor.AgentRole), word(r.Actor.AgentInstanceID), word(r.TaskID),
		model, tools, approval, decision, string(r.Result),
		word(r.Lineage.ManagerDeploymentID), word(r.Lineage.DeploymentID), word(r.Lineage.SwarmID), word(r.Lineage.CorrelationID),
	}
}

// word returns a value, or nothing for null.
func word[S ~string](s *S) string {
	if s == nil {
		return ""
	}
	return string(*s)
}
