package kit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// ndjson is the media type of a record a line.
const ndjson = "application/x-ndjson"

// View is an execution as an administrator reads it who may read metadata.
type View struct {
	Auditview   *Endpoint
	ID          string // any that means it
	ClientAppID string // narrows what the id means; "" does not
}

// View returns what a client calls swarmID, as it is read.
func (d *Deployment) View(clientAppID, swarmID string) View {
	return View{Auditview: d.Auditview, ID: swarmID, ClientAppID: clientAppID}
}

// Get reads "audit", "replay", "lineage" and the like. The query is given by names and
// values; accept may be "".
func (v View) Get(what, accept string, query ...string) Response {
	values := url.Values{}
	if v.ClientAppID != "" {
		values.Set("client_app_id", v.ClientAppID)
	}
	for i := 0; i+1 < len(query); i += 2 {
		values.Set(query[i], query[i+1])
	}
	r := Request{Method: http.MethodGet, Path: "/admin/api/runs" + escaped(v.ID, what) + "?" + values.Encode(), Bearer: MetadataViewer}
	if accept != "" {
		r.Header = http.Header{"Accept": {accept}}
	}
	return v.Auditview.Must(r)
}

// page reads one page of what into page.
func (v View) page(page any, what, accept string, limit int, cursor int64) error {
	answer := v.Get(what, accept, "limit", strconv.Itoa(limit), "cursor", strconv.FormatInt(cursor, 10))
	if answer.Status != http.StatusOK {
		return fmt.Errorf("status %d, %s", answer.Status, answer.Body)
	}
	return json.Unmarshal(answer.Body, page)
}

// Audit reads the audit trace page by page, and returns the bytes of each record. A
// limit of 0 is the default.
func (v View) Audit(limit int) (records []string, err error) {
	for cursor := int64(0); ; {
		var page struct {
			Records    []json.RawMessage `json:"records"`
			NextCursor *int64            `json:"next_cursor"`
		}
		if err := v.page(&page, "audit", "", limit, cursor); err != nil {
			return nil, err
		}
		for _, record := range page.Records {
			records = append(records, string(record))
		}
		if page.NextCursor == nil {
			return records, nil
		}
		if limit > 0 && len(page.Records) != limit {
			return nil, fmt.Errorf("a page has %d records, and others follow", len(page.Records))
		}
		cursor = *page.NextCursor
	}
}

// Stream reads the whole audit trace as a stream, and returns its lines.
func (v View) Stream() ([]string, error) {
	answer := v.Get("audit", ndjson)
	if answer.Status != http.StatusOK || answer.Header.Get("Content-Type") != ndjson {
		return nil, fmt.Errorf("status %d, %s", answer.Status, answer.Body)
	}
	return lines(answer.Body), nil
}

// Replay reads the lines of the replay page by page, as JSON and as text.
func (v View) Replay(limit int) (inJSON, asText []string, err error) {
	for cursor := int64(0); ; {
		var page struct {
			Lines      []string `json:"lines"`
			NextCursor *int64   `json:"next_cursor"`
		}
		if err := v.page(&page, "replay", "application/json", limit, cursor); err != nil {
			return nil, nil, err
		}
		text := v.Get("replay", "", "limit", strconv.Itoa(limit), "cursor", strconv.FormatInt(cursor, 10))
		if text.Status != http.StatusOK {
			return nil, nil, fmt.Errorf("status %d, %s", text.Status, text.Body)
		}
		inJSON, asText = append(inJSON, page.Lines...), append(asText, lines(text.Body)...)
		if page.NextCursor == nil {
			return inJSON, asText, nil
		}
		cursor = *page.NextCursor
	}
}

// lines returns the lines of a text that ends each with a line feed.
func lines(text []byte) []string {
	if len(text) == 0 {
		return nil
	}
	return strings.Split(string(bytes.TrimSuffix(text, []byte("\n"))), "\n")
}
