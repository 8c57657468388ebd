package httpapi

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"verbatim.internal/pkg/contracts/httpapi"
	"verbatim.internal/pkg/domain/run"
)

func (a *api) turn(c *gin.Context) {
	turn, err := decodeTurn(bodyOf(c))
	if err != nil {
		a.fail(c, err)
		return
	}
	opened, err := a.Runs.OpenTurn(c.Request.Context(), bearerOf(c), c.Param("route_key"), turn)
	if err != nil {
		a.fail(c, err)
		return
	}
	r := opened.Run
	answer(c, http.StatusOK, httpapi.TurnContext{
		Schema: httpapi.SchemaTurnContext, RunID: string(r.RunID), ThreadID: r.ThreadID, RouteKey: r.Binding.RouteKey,
		ClientConversationID: turn.ClientConversationID, ClientTurnID: turn.ClientTurnID, UserMessageID: turn.UserMessageID,
		UserInput: turn.UserInput, PageContext: turn.PageContext, Renderers: turn.Renderers, Instructions: opened.Instructions,
		Knowledge: httpapi.Nothing{}, Memory: httpapi.Nothing{}, Tools: httpapi.Nothing{}, CreatedAt: httpapi.FormatTime(r.CreatedAt),
	})
}

func decodeTurn(body []byte) (run.Turn, error) {
	dto, err := httpapi.DecodeTurn(body)
	if err != nil {
		return run.Turn{}, err
	}
	f := run.TurnFields{
		ClientConversationID: dto.ClientConversationID, ClientTurnID: dto.ClientTurnID,
		UserMessageID: dto.UserMessageID, UserInput: dto.UserInput, PageContext: dto.PageContext,
	}
	if dto.Renderers != nil {
		f.Renderers = *dto.Renderers
	}
	return run.NewTurn(f)
}

func (a *api) complete(c *gin.Context) {
	completion, err := decodeCompletion(bodyOf(c))
	if err != nil {
		a.fail(c, err)
		return
	}
	id, err := runID(c)
	if err != nil {
		a.fail(c, err)
		return
	}
	done, err := a.Runs.Complete(c.Request.Context(), bearerOf(c), id, completion)
	if err != nil {
		a.fail(c, err)
		return
	}
	answer(c, http.StatusOK, httpapi.RunCompletion{
		Schema: httpapi.SchemaRunCompletion, RunID: string(id), AssistantMessageID: completion.AssistantMessageID,
		Status: string(completion.Status), CompletedAt: httpapi.FormatTime(done.At), IdempotentReplay: done.Replay,
	})
}

func decodeCompletion(body []byte) (run.Completion, error) {
	dto, err := httpapi.DecodeCompletion(body)
	if err != nil {
		return run.Completion{}, err
	}
	f := run.CompletionFields{
		AssistantMessageID: dto.AssistantMessageID, Status: dto.Status, Content: dto.Content, Model: dto.Model, Runtime: dto.Runtime,
	}
	if u := dto.Usage; u != nil {
		f.Usage = &run.Usage{
			InputTokens: (*int64)(u.InputTokens), CachedInputTokens: (*int64)(u.CachedInputTokens),
			OutputTokens: (*int64)(u.OutputTokens), TotalTokens: (*int64)(u.TotalTokens),
			ToolCalls: (*int64)(u.ToolCalls), CostUSD: u.CostUSD,
		}
	}
	return run.NewCompletion(f)
}

func (a *api) traceEvents(c *gin.Context) {
	batch, err := decodeTraceEvents(bodyOf(c))
	if err != nil {
		a.fail(c, err)
		return
	}
	id, err := runID(c)
	if err != nil {
		a.fail(c, err)
		return
	}
	done, err := a.Runs.RecordTrace(c.Request.Context(), bearerOf(c), id, batch)
	if err != nil {
		a.fail(c, err)
		return
	}
	dropped := 0
	for _, e := range batch {
		dropped += e.DroppedFields
	}
	answer(c, http.StatusOK, httpapi.TraceAck{
		Schema: httpapi.SchemaTraceAck, RunID: string(id), Accepted: done.Accepted, Skipped: done.Skipped,
		DroppedFields: dropped, LastPosition: done.LastPosition,
	})
}

func decodeTraceEvents(body []byte) ([]run.TraceEvent, error) {
	dto, err := httpapi.DecodeTraceEvents(body)
	if err != nil {
		return nil, err
	}
	fields := make([]run.TraceFields, len(dto.Events))
	for i, e := range dto.Events {
		fields[i] = run.TraceFields(e)
	}
	return run.NewTraceBatch(fields)
}
