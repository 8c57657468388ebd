package trace

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

const null = "null"

// AppendJSON appends r as one JSON object: the bytes the JSON library gives for
// it, at a fraction of the cost. The keys are in the frozen order, and texts are
// UTF-8 with no more escapes than JSON needs; bytes that are not UTF-8 become
// U+FFFD.
func AppendJSON(dst []byte, r Record) []byte {
	dst = append(dst, `{"audit_id":"`...)
	dst = r.AuditID.append(dst)
	dst = append(dst, `","occurred_at":`...)
	dst = appendString(dst, r.OccurredAt)
	dst = append(dst, `,"action":`...)
	dst = appendString(dst, r.Action)
	dst = append(dst, `,"actor":{"agent_role":`...)
	dst = appendOptional(dst, r.Actor.AgentRole)
	dst = append(dst, `,"agent_instance_id":`...)
	dst = appendOptional(dst, r.Actor.AgentInstanceID)
	dst = append(dst, `},"task_id":`...)
	dst = appendOptional(dst, r.TaskID)
	dst = append(dst, `,"model":`...)
	if r.Model == nil {
		dst = append(dst, null...)
	} else {
		dst = append(dst, `{"model_id":`...)
		dst = append(appendString(dst, r.Model.ModelID), '}')
	}
	dst = append(dst, `,"tool":`...)
	if r.Tool == nil {
		dst = append(dst, null...)
	} else {
		dst = append(dst, `{"count":`...)
		dst = append(strconv.AppendInt(dst, r.Tool.Count, 10), '}')
	}
	dst = append(dst, `,"approval":`...)
	if r.Approval == nil {
		dst = append(dst, null...)
	} else {
		dst = append(dst, `{"approval_id":`...)
		dst = appendString(dst, r.Approval.ApprovalID)
		dst = append(dst, `,"decision":`...)
		dst = append(appendOptional(dst, r.Approval.Decision), '}')
	}
	dst = append(dst, `,"result":`...)
	dst = appendString(dst, r.Result)
	dst = append(dst, `,"lineage":{"manager_deployment_id":`...)
	dst = appendOptional(dst, r.Lineage.ManagerDeploymentID)
	dst = append(dst, `,"deployment_id":`...)
	dst = appendOptional(dst, r.Lineage.DeploymentID)
	dst = append(dst, `,"swarm_id":`...)
	dst = appendOptional(dst, r.Lineage.SwarmID)
	dst = append(dst, `,"correlation_id":`...)
	dst = appendOptional(dst, r.Lineage.CorrelationID)
	dst = append(dst, `},"redacted":`...)
	return append(strconv.AppendBool(dst, r.Redacted), '}')
}

func appendOptional[S ~string](dst []byte, s *S) []byte {
	if s == nil {
		return append(dst, null...)
	}
	return appendString(dst, *s)
}

func appendString[S ~string](dst []byte, s S) []byte {
	dst, _ = jsontext.AppendQuote(dst, s) // only says that it replaced what is not UTF-8
	return dst
}
