// Package adminapi reads executions from auditview's admin API, as an administrator.
package adminapi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"verbatim.internal/pkg/contracts/httpapi"
	"verbatim.internal/pkg/domain/trace"
	"verbatim.internal/pkg/platform/config"
)

const (
	pageLimit = 1000 // records a page, the API's most
	maxAnswer = 16 << 20
	maxRecord = 64 << 10 // far more than a record has
	// headerTimeout bounds the wait for an answer to begin; a stream may go on.
	headerTimeout = 30 * time.Second
)

// ErrPlainHTTP is an address to which a token would travel unprotected.
var ErrPlainHTTP = errors.New("auditview is spoken to over https; plain http is for this machine only")

// AnswerError is an answer that is no success. It holds what the service says, which is
// never what was sent.
type AnswerError struct {
	Status        int
	Code, Message string
}

func (e *AnswerError) Error() string {
	return fmt.Sprintf("auditview answers %d %s: %s", e.Status, e.Code, e.Message)
}

// AmbiguousError is an id that several executions have.
type AmbiguousError struct{ Candidates []httpapi.ExecutionCandidate }

func (e *AmbiguousError) Error() string {
	const shown = 10
	names := make([]string, 0, shown+1)
	for i, c := range e.Candidates {
		if i == shown {
			names = append(names, "and others")
			break
		}
		names = append(names, c.SwarmID+" of "+c.ClientAppID)
	}
	return "several runs have this id; name one by its swarm id, and its client with --client: " + strings.Join(names, ", ")
}

// Client reads as one administrator. It is safe for concurrent use.
type Client struct {
	http  *http.Client
	base  string
	token config.Secret
}

// New returns a client of the auditview at base, a URL without a path. The error is
// ErrPlainHTTP, or says that base is no such URL.
func New(base string, token config.Secret) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		return nil, errors.New("the address of auditview is a URL such as https://audit.example.com")
	}
	if u.Scheme == "http" && !isLoopback(u.Hostname()) {
		return nil, ErrPlainHTTP
	}
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:errcheck,forcetypeassert // its type is documented
	transport.ResponseHeaderTimeout = headerTimeout
	return &Client{
		http: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		base: u.Scheme + "://" + u.Host, token: token,
	}, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Run names an execution: by any of its ids, and where others have the same by its client.
type Run struct{ ID, ClientAppID string }

// Replay returns the replay lines after a cursor, an ordinal of the audit trace from 0, as
// many as one page has, and whether there are more now.
func (c *Client) Replay(ctx context.Context, run Run, cursor int64) (lines []string, more bool, err error) {
	var page httpapi.ReplayPage
	if err := c.get(ctx, run, "replay", cursor, pageLimit, &page); err != nil {
		return nil, false, err
	}
	return page.Lines, page.NextCursor != nil, nil
}

// Lineage returns the four ids of an execution.
func (c *Client) Lineage(ctx context.Context, run Run) (trace.Lineage, error) {
	var page struct {
		Lineage trace.Lineage `json:"lineage"`
	}
	err := c.get(ctx, run, "audit", 0, 1, &page)
	return page.Lineage, err
}

// Records calls each with the bytes of every record of the audit trace, in order, all of
// one moment. The bytes are the service's, and valid until each returns.
func (c *Client) Records(ctx context.Context, run Run, each func(record []byte) error) error {
	response, err := c.do(ctx, run, "audit", nil, httpapi.ContentTypeAuditTrace)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	lines := bufio.NewReaderSize(response.Body, maxRecord)
	for {
		line, err := lines.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF) && len(line) == 0:
			return nil
		case err != nil:
			return fmt.Errorf("the trace broke off: %w", io.ErrUnexpectedEOF)
		}
		if err := each(line[:len(line)-1]); err != nil {
			return err
		}
	}
}

func (c *Client) get(ctx context.Context, run Run, what string, cursor, limit int64, answer any) error {
	query := url.Values{"cursor": {strconv.FormatInt(cursor, 10)}, "limit": {strconv.FormatInt(limit, 10)}}
	response, err := c.do(ctx, run, what, query, "application/json")
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if err := json.UnmarshalRead(io.LimitReader(response.Body, maxAnswer), answer); err != nil {
		return errors.New("auditview's answer is not what its contract says")
	}
	return nil
}

// do returns a successful answer, whose body the caller closes.
func (c *Client) do(ctx context.Context, run Run, what string, query url.Values, accept string) (*http.Response, error) {
	if query == nil {
		query = url.Values{}
	}
	if run.ClientAppID != "" {
		query.Set("client_app_id", run.ClientAppID)
	}
	address := c.base + "/admin/api/runs/" + url.PathEscape(run.ID) + "/" + what + "?" + query.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", accept)
	r.Header.Set("Authorization", "Bearer "+c.token.Reveal())
	response, err := c.http.Do(r)
	if err != nil {
		return nil, fmt.Errorf("auditview gives no answer: %w", unwrapURL(err))
	}
	if response.StatusCode == http.StatusOK {
		return response, nil
	}
	defer func() { _ = response.Body.Close() }()
	return nil, failure(response)
}

// unwrapURL takes off what repeats the address.
func unwrapURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

func failure(response *http.Response) error {
	content, _ := io.ReadAll(io.LimitReader(response.Body, maxAnswer)) // what came says enough
	if response.StatusCode == http.StatusMultipleChoices {
		var list httpapi.ExecutionCandidates
		if json.Unmarshal(content, &list) == nil {
			return &AmbiguousError{Candidates: list.Candidates}
		}
	}
	told := httpapi.Error{Code: "unknown", Message: "no reason is given"}
	_ = json.Unmarshal(content, &told)
	return &AnswerError{Status: response.StatusCode, Code: told.Code, Message: told.Message}
}
