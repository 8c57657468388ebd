package httpapi

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"sync"

	"github.com/gin-gonic/gin"

	"verbatim.internal/pkg/contracts/httpapi"
	"verbatim.internal/pkg/domain/archive"
	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/services/ingest/internal/app"
)

const bodyKey = "body"

const (
	// keptBuffer is the largest buffer that is kept for the next request.
	keptBuffer = 512 << 10
	// smallBody is a body, in bytes, of which there may be any number at a time; larger ones
	// share largeBodies and wait for their turn.
	smallBody, largeBodies = 64 << 10, 48 << 20
)

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// body reads the envelope, never more than its limit.
func (a *api) body(c *gin.Context) { a.readBody(c, httpapi.MaxEnvelopeBytes, errTooLarge) }

// bodyUpTo reads a body of at most limit bytes; tooLarge is the refusal of a larger one.
func (a *api) bodyUpTo(limit int64, tooLarge error) gin.HandlerFunc {
	return func(c *gin.Context) { a.readBody(c, limit, tooLarge) }
}

func (a *api) readBody(c *gin.Context, limit int64, tooLarge error) {
	if e := strings.Join(c.Request.Header.Values("Content-Encoding"), ","); e != "" && !strings.EqualFold(e, "identity") {
		a.fail(c, errEncoding)
		return
	}
	if c.Request.ContentLength > limit {
		a.fail(c, tooLarge)
		return
	}
	size := c.Request.ContentLength
	if size < 0 { // the client does not say
		size = limit
	}
	if size > smallBody {
		ctx, cancel := a.patience(c.Request.Context())
		defer cancel()
		if err := a.large.Acquire(ctx, size); err != nil {
			a.fail(c, err)
			return
		}
		defer a.large.Release(size)
	}
	buf, _ := buffers.Get().(*bytes.Buffer)
	defer func() {
		if buf.Cap() <= keptBuffer {
			buf.Reset()
			buffers.Put(buf)
		}
	}()
	if _, err := buf.ReadFrom(http.MaxBytesReader(c.Writer, c.Request.Body, limit)); err != nil {
		var over *http.MaxBytesError
		if errors.As(err, &over) {
			a.fail(c, tooLarge)
		} else {
			a.fail(c, httpapi.ErrInvalid) // the client did not send what it announced
		}
		return
	}
	c.Set(bodyKey, buf.Bytes())
	c.Next()
}

func bodyOf(c *gin.Context) []byte {
	b, _ := c.MustGet(bodyKey).([]byte)
	return b
}

// conversationID is asked for after the body: what breaks the schema is named first.
func conversationID(c *gin.Context) (identity.UUID, error) {
	id, ok := identity.ParseUUID(c.Param("conversation_id"))
	if !ok {
		return "", archive.ErrNotFound
	}
	return id, nil
}

func (a *api) capabilities(c *gin.Context) {
	caps, err := a.Archives.Capabilities(c.Request.Context())
	if err != nil {
		a.fail(c, err)
		return
	}
	answer(c, http.StatusOK, httpapi.Capabilities{
		Schema: httpapi.SchemaCapabilities, CrossBindingMembers: caps.MemberBindings, MemberBindings: httpapi.MemberBindings,
	})
}

func (a *api) create(c *gin.Context) {
	creation, err := decodeCreation(bodyOf(c))
	if err != nil {
		a.fail(c, err)
		return
	}
	created, err := a.Archives.Create(c.Request.Context(), bearerOf(c), creation)
	a.header(c, created, err)
}

func decodeCreation(body []byte) (archive.Creation, error) {
	dto, v2, err := httpapi.DecodeCreate(body)
	if err != nil {
		return archive.Creation{}, err
	}
	if !v2 {
		f := archive.FieldsV1{
			ClientArchiveID: dto.ClientArchiveID, ClientConversationID: dto.ClientConversationID,
			Route: *dto.Route, MemberSessionIDs: *dto.MemberSessionIDs,
		}
		if dto.MemberLabels != nil {
			f.MemberLabels = *dto.MemberLabels
		}
		return archive.NewCreationV1(f)
	}
	f := archive.FieldsV2{ClientArchiveID: dto.ClientArchiveID, ClientConversationID: dto.ClientConversationID}
	for _, m := range *dto.Members {
		f.Members = append(f.Members, archive.MemberFields(m))
	}
	return archive.NewCreationV2(f)
}

func (a *api) confirm(c *gin.Context) {
	err := httpapi.DecodeConfirm(bodyOf(c))
	if err != nil {
		a.fail(c, err)
		return
	}
	id, err := conversationID(c)
	if err != nil {
		a.fail(c, err)
		return
	}
	confirmed, err := a.Archives.Confirm(c.Request.Context(), bearerOf(c), id)
	a.header(c, confirmed, err)
}

// append stores a batch in one round trip where memory is enough. Whatever else there is
// to say is said to an authenticated bearer only.
func (a *api) append(c *gin.Context) {
	batch, err := decodeBatch(bodyOf(c))
	var id identity.UUID
	if err == nil {
		id, err = conversationID(c)
	}
	ctx := c.Request.Context()
	var last int
	var done bool
	if recalled, ok := c.Get(recalledKey); ok {
		bearer, _ := recalled.(app.RecalledBearer)
		if err == nil {
			last, done, err = a.Archives.AppendRecalled(ctx, bearer, id, batch)
		}
		if !done {
			if a.authenticate(c); c.IsAborted() {
				return
			}
		}
	}
	if err == nil && !done {
		last, err = a.Archives.Append(ctx, bearerOf(c), id, batch)
	}
	if err != nil {
		a.fail(c, err)
		return
	}
	answer(c, http.StatusOK, httpapi.Ack{Schema: httpapi.SchemaAck, ConversationID: string(id), LastSequence: last})
}

func decodeBatch(body []byte) ([]archive.Event, error) {
	dto, err := httpapi.DecodeAppend(body)
	if err != nil {
		return nil, err
	}
	fields := make([]archive.Fields, len(dto.Events))
	for i, e := range dto.Events {
		fields[i] = archive.Fields{
			EventID: e.EventID, Sequence: int64(e.Sequence), ClientTurnID: e.ClientTurnID, Kind: e.Kind,
			Content: e.Content, Status: e.Status, RunID: e.RunID, MemberSessionID: e.MemberSessionID,
		}
	}
	return archive.NewBatch(fields)
}

// header answers a creation or a confirmation.
func (a *api) header(c *gin.Context, h *archive.Archive, err error) {
	if err != nil {
		a.fail(c, err)
		return
	}
	out := httpapi.HeaderAnswer{Schema: httpapi.SchemaHeader, Header: httpapi.Header{
		ConversationID: string(h.ConversationID), ClientArchiveID: string(h.ClientArchiveID),
		ClientConversationID: h.ClientConversationID, ClientAppID: h.Binding.ClientAppID, RouteKey: h.Binding.RouteKey,
		State: string(h.State), MemberCount: len(h.Members), ConfirmedCount: h.ConfirmedCount,
		LastSequence: h.LastSequence, MessageCount: h.MessageCount, TurnCount: h.TurnCount,
		CreatedAt: httpapi.FormatTime(h.CreatedAt), UpdatedAt: httpapi.FormatTime(h.UpdatedAt),
	}}
	if h.LastTurnStatus != archive.NoTurn {
		status := string(h.LastTurnStatus)
		out.LastTurnStatus = &status
	}
	answer(c, http.StatusOK, out)
}
