package command

import (
	"io"

	"verbatim.internal/services/auditview"
	"verbatim.internal/services/ingest"
)

func printRegistry(out io.Writer, r ingest.Result) error {
	var changes []change
	for _, c := range r.Changes {
		changes = append(changes, change{c.Kind, c.Name, c.Action, c.Fields})
	}
	var tokens []generated
	for _, t := range r.Tokens {
		tokens = append(tokens, generated{t.Kind, t.Name, t.Value})
	}
	return printChanges(out, changes, tokens)
}

func printAdmins(out io.Writer, r auditview.Result) error {
	var changes []change
	for _, c := range r.Changes {
		changes = append(changes, change{c.Kind, c.Name, c.Action, c.Fields})
	}
	var tokens []generated
	for _, t := range r.Tokens {
		tokens = append(tokens, generated{t.Kind, t.Name, t.Value})
	}
	return printChanges(out, changes, tokens, r.Warnings...)
}
