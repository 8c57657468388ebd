package httpapi

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	"verbatim.internal/pkg/contracts/httpapi"
	"verbatim.internal/pkg/domain/execution"
	"verbatim.internal/services/ingest/internal/app"
)

func (a *api) executionEvents(c *gin.Context) {
	batch, err := decodeExecutionEvents(bodyOf(c), attributionOf(c))
	if err != nil {
		a.fail(c, err)
		return
	}
	key := executionKey(c)
	done, err := a.Executions.RecordEvents(c.Request.Context(), key, batch)
	if err != nil {
		a.fail(c, err)
		return
	}
	dropped := 0
	for i := range batch {
		dropped += batch[i].DroppedCount
	}
	answer(c, http.StatusOK, httpapi.ExecutionEventsAck{
		Schema: httpapi.SchemaExecutionAck, SwarmID: key.SwarmID, Accepted: done.Accepted, Skipped: done.Skipped,
		DroppedFields: dropped, LastPosition: done.LastPosition,
	})
}

func decodeExecutionEvents(body []byte, by execution.Attribution) ([]execution.Event, error) {
	dto, err := httpapi.DecodeExecutionEvents(body)
	if err != nil {
		return nil, err
	}
	fields := make([]execution.EventFields, len(dto.Events))
	for i, e := range dto.Events {
		fields[i] = execution.EventFields(e)
	}
	return execution.NewBatch(fields, by)
}

func (a *api) putTask(c *gin.Context) {
	fields, err := httpapi.DecodeExecutionTask(bodyOf(c))
	if err != nil {
		a.fail(c, err)
		return
	}
	task, err := execution.NewTask(fields, attributionOf(c))
	if err != nil {
		a.fail(c, err)
		return
	}
	a.putFact(c, "task_id", 0, func(ctx context.Context, key app.ExecutionKey, id string) (bool, error) {
		return a.Executions.PutTask(ctx, key, id, task)
	})
}

func (a *api) putApproval(c *gin.Context) {
	dto, err := httpapi.DecodeExecutionApproval(bodyOf(c))
	if err != nil {
		a.fail(c, err)
		return
	}
	approval, err := execution.NewApproval(execution.ApprovalFields(dto), attributionOf(c))
	if err != nil {
		a.fail(c, err)
		return
	}
	a.putFact(c, "approval_id", 0, func(ctx context.Context, key app.ExecutionKey, id string) (bool, error) {
		return a.Executions.PutApproval(ctx, key, id, approval)
	})
}

func (a *api) putGrant(c *gin.Context) {
	fields, err := httpapi.DecodeExecutionGrant(bodyOf(c))
	if err != nil {
		a.fail(c, err)
		return
	}
	grant, dropped, err := execution.NewGrant(fields)
	if err != nil {
		a.fail(c, err)
		return
	}
	a.putFact(c, "grant_id", dropped, func(ctx context.Context, key app.ExecutionKey, id string) (bool, error) {
		return a.Executions.PutGrant(ctx, key, id, grant)
	})
}

// putFact puts a fact under the id in the path, and answers whether that changed anything.
func (a *api) putFact(c *gin.Context, param string, dropped int, put func(ctx context.Context, key app.ExecutionKey, id string) (bool, error)) {
	id, err := execution.ParseID(pathID(c, param))
	if err != nil {
		a.fail(c, err)
		return
	}
	key := executionKey(c)
	changed, err := put(c.Request.Context(), key, id)
	if err != nil {
		a.fail(c, err)
		return
	}
	answer(c, http.StatusOK, httpapi.ExecutionFactAck{
		Schema: httpapi.SchemaExecutionAck, SwarmID: key.SwarmID, Changed: changed, DroppedFields: dropped,
	})
}

func (a *api) callbackAttempts(c *gin.Context) {
	attempts, err := decodeAttempts(bodyOf(c))
	if err != nil {
		a.fail(c, err)
		return
	}
	key := executionKey(c)
	done, err := a.Executions.RecordAttempts(c.Request.Context(), key, attempts)
	if err != nil {
		a.fail(c, err)
		return
	}
	answer(c, http.StatusOK, httpapi.ExecutionAttemptsAck{
		Schema: httpapi.SchemaExecutionAck, SwarmID: key.SwarmID, Accepted: done.Accepted, Skipped: done.Skipped,
		LastPosition: done.LastPosition,
	})
}

func decodeAttempts(body []byte) ([]execution.Attempt, error) {
	dto, err := httpapi.DecodeExecutionAttempts(body)
	if err != nil {
		return nil, err
	}
	fields := make([]execution.AttemptFields, len(dto.Attempts))
	for i, at := range dto.Attempts {
		fields[i] = execution.AttemptFields(at)
	}
	return execution.NewAttempts(fields)
}
