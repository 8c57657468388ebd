package trace

import "strconv"

// Replay returns a line for each record, for a person to read a run step by step.
func Replay(records []Record) []string {
	lines := make([]string, len(records))
	for i, r := range records {
		lines[i] = Line(r)
	}
	return lines
}

// Line returns the line of a record: its id, time, role/instance and action, its
// task, model, tool calls and approval where it has them, and its result. What
// is unknown of an actor or undecided of an approval is a hyphen.
func Line(r Record) string {
	return string(AppendLine(make([]byte, 0, 160), r))
}

// AppendLine appends the [Line] of r, without a line feed.
func AppendLine(dst []byte, r Record) []byte {
	dst = r.AuditID.append(dst)
	dst = append(dst, ' ')
	dst = append(dst, r.OccurredAt...)
	dst = append(dst, ' ')
	dst = appendKnown(dst, r.Actor.AgentRole)
	dst = append(dst, '/')
	dst = appendKnown(dst, r.Actor.AgentInstanceID)
	dst = append(dst, ' ')
	dst = append(dst, r.Action...)
	if r.TaskID != nil {
		dst = append(dst, " task="...)
		dst = append(dst, *r.TaskID...)
	}
	if r.Model != nil {
		dst = append(dst, " model="...)
		dst = append(dst, r.Model.ModelID...)
	}
	if r.Tool != nil {
		dst = append(dst, " tools="...)
		dst = strconv.AppendInt(dst, r.Tool.Count, 10)
	}
	if r.Approval != nil {
		dst = append(dst, " approval="...)
		dst = append(dst, r.Approval.ApprovalID...)
		dst = append(dst, ':')
		dst = appendKnown(dst, r.Approval.Decision)
	}
	dst = append(dst, " -> "...)
	return append(dst, r.Result...)
}

func appendKnown[S ~string](dst []byte, s *S) []byte {
	if s == nil {
		return append(dst, '-')
	}
	return append(dst, *s...)
}
