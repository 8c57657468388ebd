package adminapi

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/go-json-experiment/json"

	"verbatim.internal/pkg/contracts/httpapi"
	"verbatim.internal/pkg/domain/trace"
)

const (
	contentTypeText = "text/plain; charset=utf-8"
	typeJSON        = "application/json"
	typeText        = "text/plain"
	headerETag      = "ETag"
	// recordSize is about the bytes of a record.
	recordSize = 512
)

// audit answers with a page of the audit trace, or streams all of it.
func (a *api) audit(c *gin.Context) {
	c.Header("Vary", "Accept")
	if quality(c, httpapi.ContentTypeAuditTrace) > quality(c, typeJSON) {
		a.stream(c)
		return
	}
	ref, cursor, limit, ok := a.positions(c)
	if !ok {
		return
	}
	page, err := a.Reader.Audit(c.Request.Context(), ref, cursor, limit, isKnown(c, "audit"))
	if err != nil {
		a.failWith(c, err)
		return
	}
	if answerTag(c, "audit", page.Tag, page.Unchanged) {
		return
	}
	c.Data(http.StatusOK, contentType, appendAudit(make([]byte, 0, recordSize*(1+len(page.Records))), page.Execution.Lineage, page.Records, page.Next))
}

// appendAudit appends a page of the audit trace: the frozen records in the bytes of
// trace.AppendJSON.
func appendAudit(dst []byte, lineage trace.Lineage, records []trace.Record, next *int64) []byte {
	dst = append(dst, `{"schema":"`+httpapi.SchemaAuditTrace+`","lineage":`...)
	shown, err := json.Marshal(lineage)
	if err != nil {
		panic("adminapi: a lineage that is not JSON") // a programmer's error; PostgreSQL's text is UTF-8
	}
	dst = append(append(dst, shown...), `,"records":[`...)
	for i, r := range records {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = trace.AppendJSON(dst, r)
	}
	dst = append(dst, `],"next_cursor":`...)
	if next == nil {
		return append(dst, "null}"...)
	}
	return append(strconv.AppendInt(dst, *next, 10), '}')
}

// replay answers with the same page as lines for a person.
func (a *api) replay(c *gin.Context) {
	c.Header("Vary", "Accept")
	ref, cursor, limit, ok := a.positions(c)
	if !ok {
		return
	}
	kind := "lines"
	inJSON := quality(c, typeJSON) > quality(c, typeText)
	if inJSON {
		kind = "lines.json"
	}
	page, err := a.Reader.Audit(c.Request.Context(), ref, cursor, limit, isKnown(c, kind))
	if err != nil {
		a.failWith(c, err)
		return
	}
	if answerTag(c, kind, page.Tag, page.Unchanged) {
		return
	}
	if inJSON {
		answer(c, http.StatusOK, httpapi.ReplayPage{Lines: trace.Replay(page.Records), NextCursor: page.Next})
		return
	}
	var lines []byte
	for _, r := range page.Records {
		lines = append(trace.AppendLine(lines, r), '\n')
	}
	c.Data(http.StatusOK, contentTypeText, lines)
}

// quality returns how much the request wants a media type that it names, from 0 to 1000.
func quality(c *gin.Context, mediaType string) int {
	for _, header := range c.Request.Header.Values("Accept") {
		for part := range strings.SplitSeq(header, ",") {
			name, parameters, _ := strings.Cut(part, ";")
			if !strings.EqualFold(strings.TrimSpace(name), mediaType) {
				continue
			}
			for p := range strings.SplitSeq(parameters, ";") {
				if name, value, _ := strings.Cut(strings.TrimSpace(p), "="); strings.EqualFold(name, "q") {
					q, err := strconv.ParseFloat(value, 64)
					if err != nil || !(q >= 0 && q <= 1) {
						return 0
					}
					return int(q * 1000)
				}
			}
			return 1000
		}
	}
	return 0
}

// entityTag is the strong ETag of one kind of answer with a tag.
func entityTag(kind, tag string) string { return `"` + kind + "." + tag + `"` }

// isKnown returns whether the request has the answer with a tag. RFC 9110 compares
// If-None-Match weakly: W/ is none of its business.
func isKnown(c *gin.Context, kind string) func(tag string) bool {
	return func(tag string) bool {
		if tag == "" {
			return false
		}
		for _, header := range c.Request.Header.Values("If-None-Match") {
			for part := range strings.SplitSeq(header, ",") { // no tag of ours has a comma
				part = strings.TrimSpace(part)
				if part == "*" || strings.TrimPrefix(part, "W/") == entityTag(kind, tag) {
					return true
				}
			}
		}
		return false
	}
}

// answerTag tells the tag of an answer, and ends one that is unchanged.
func answerTag(c *gin.Context, kind, tag string, unchanged bool) (done bool) {
	if tag != "" {
		c.Header(headerETag, entityTag(kind, tag))
	}
	if unchanged {
		c.Status(http.StatusNotModified)
		c.Writer.WriteHeaderNow()
	}
	return unchanged
}
