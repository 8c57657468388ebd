package kit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"verbatim.internal/pkg/contracts/openapi"
)

// Contract holds exchanges against one service's OpenAPI document. It is safe for
// concurrent use.
type Contract struct {
	doc    *openapi3.T
	router routers.Router
}

// IngestContract is what agents may rely on.
var IngestContract = sync.OnceValues(func() (*Contract, error) { return newContract(openapi.Ingest) })

// ControlContract is what controllers may rely on.
var ControlContract = sync.OnceValues(func() (*Contract, error) { return newContract(openapi.Control) })

// AuditviewContract is what administrators may rely on.
var AuditviewContract = sync.OnceValues(func() (*Contract, error) { return newContract(openapi.Auditview) })

func newContract(document []byte) (*Contract, error) {
	doc, err := openapi3.NewLoader().LoadFromData(document)
	if err != nil {
		return nil, err
	}
	if err := doc.Validate(context.Background()); err != nil {
		return nil, err
	}
	router, err := gorillamux.NewRouter(doc)
	if err != nil {
		return nil, err
	}
	return &Contract{doc: doc, router: router}, nil
}

// Check returns what is wrong with an exchange: an answer that its document does
// not declare, and a request that was answered 2xx though the document forbids it.
// A path or method that is not in the document must be answered 404 not_found.
// The error may quote the exchange, which in tests holds no real conversation.
func (c *Contract) Check(ctx context.Context, request *http.Request, body []byte, answer Response) error {
	route, params, err := c.router.FindRoute(request)
	if err != nil {
		return c.checkUnknown(ctx, request, answer)
	}
	options := &openapi3filter.Options{
		AuthenticationFunc:    openapi3filter.NoopAuthenticationFunc,
		IncludeResponseStatus: true,
		MultiError:            true,
		SkipSettingDefaults:   true,
	}
	copied := request.Clone(ctx)
	copied.Body = io.NopCloser(bytes.NewReader(body))
	input := &openapi3filter.RequestValidationInput{Request: copied, PathParams: params, Route: route, Options: options}
	var errs []error
	if answer.Status/100 == 2 {
		if err := openapi3filter.ValidateRequest(ctx, input); err != nil {
			errs = append(errs, fmt.Errorf("a request that the document forbids was accepted: %w", err))
		}
	}
	if answer.Status == http.StatusNotModified { // which the library passes over
		return errors.Join(append(errs, checkNotModified(route.Operation, answer))...)
	}
	if answer.Header.Get("Content-Type") == ndjson { // of which the library reads none
		errs = append(errs, checkLines(route.Operation, answer))
		headers := *options
		headers.ExcludeResponseBody = true
		options = &headers
	}
	err = openapi3filter.ValidateResponse(ctx, &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input,
		Status:                 answer.Status,
		Header:                 answer.Header,
		Body:                   io.NopCloser(bytes.NewReader(answer.Body)),
		Options:                options,
	})
	if err != nil {
		errs = append(errs, fmt.Errorf("an answer that the document does not declare: %w", err))
	}
	return errors.Join(errs...)
}

func checkNotModified(operation *openapi3.Operation, answer Response) error {
	declared := operation.Responses.Status(http.StatusNotModified)
	if declared == nil || len(answer.Body) > 0 {
		return errors.New("304 is not declared, or has a body")
	}
	for name, header := range declared.Value.Headers {
		value := answer.Header.Get(name)
		if value == "" && !header.Value.Required {
			continue
		}
		if err := header.Value.Schema.Value.VisitJSON(value, openapi3.EnableJSONSchema2020()); err != nil {
			return fmt.Errorf("the header %s is not as declared: %w", name, err)
		}
	}
	return nil
}

// checkLines holds each line of an answer against the schema of one.
func checkLines(operation *openapi3.Operation, answer Response) error {
	declared := operation.Responses.Status(answer.Status)
	if declared == nil || declared.Value.Content[ndjson] == nil {
		return errors.New("a stream is not declared")
	}
	if len(answer.Body) > 0 && !bytes.HasSuffix(answer.Body, []byte("\n")) {
		return errors.New("the last line of a stream has no end")
	}
	for _, line := range lines(answer.Body) {
		value, err := Response{Status: answer.Status, Body: []byte(line)}.JSON()
		if err != nil {
			return err
		}
		if err := declared.Value.Content[ndjson].Schema.Value.VisitJSON(value, openapi3.EnableJSONSchema2020()); err != nil {
			return fmt.Errorf("a line is not as declared: %w", err)
		}
	}
	return nil
}

func (c *Contract) checkUnknown(ctx context.Context, request *http.Request, answer Response) error {
	unknown := openapi3.NewSchema()
	unknown.AllOf = openapi3.SchemaRefs{c.doc.Components.Schemas["Error"]}
	value, err := answer.JSON()
	if err != nil {
		return err
	}
	if err := unknown.VisitJSON(value, openapi3.EnableJSONSchema2020()); err != nil {
		return fmt.Errorf("the answer to an undeclared path is no error object: %w", err)
	}
	private := isPrivate(request.URL.Path)
	if private && answer.Header.Get("Cache-Control") != "no-store" {
		return errors.New("the answer to an undeclared path may be cached")
	}
	if answer.Header.Get("X-Request-Id") == "" {
		return errors.New("the answer to an undeclared path has no request id")
	}
	if answer.Status == http.StatusUnauthorized && private {
		return nil
	}
	if answer.Status != http.StatusNotFound {
		return fmt.Errorf("an undeclared path was answered %d", answer.Status)
	}
	return ctx.Err()
}

// isPrivate reports whether answers to a path, known or not, must not be stored.
func isPrivate(path string) bool {
	for _, prefix := range []string{"/agent-", "/control-", "/runtime-", "/admin"} {
		if strings.HasPrefix(path, prefix) {
			return true
		}
	}
	return false
}
