package registryfile

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"verbatim.internal/pkg/contracts/httpapi"
	"verbatim.internal/pkg/domain/identity"
	"verbatim.internal/pkg/domain/refusal"
	"verbatim.internal/services/ingest/internal/app"
)

// The second door: bodies over HTTP are entries of the file and go through the file's
// validator. A body that breaks its schema is httpapi.ErrInvalid; an entry that breaks a
// rule is refused with InvalidRequest and with sentences that quote nothing of it.

const (
	maxRuns     = 200 // of one import over HTTP
	maxProblems = 8   // that one answer names
)

// ParseClient reads a client's entry without its app_id.
func ParseClient(appID string, body []byte) (app.RegistryClient, error) {
	c := client{AppID: appID}
	if err := httpapi.Decode(body, &c.clientFields); err != nil {
		return app.RegistryClient{}, err
	}
	var v validator
	entry := c.entry(&v)
	return entry, v.refused()
}

// ParseRoute reads a route's entry without its route_key.
func ParseRoute(routeKey string, body []byte) (app.RegistryRoute, error) {
	r := route{RouteKey: routeKey}
	if err := httpapi.Decode(body, &r.routeFields); err != nil {
		return app.RegistryRoute{}, err
	}
	var v validator
	entry := r.entry(&v)
	return entry, v.refused()
}

// ParseSession reads the entry of a session that is to be issued: its session_id may be
// absent, then newID draws one; its access token is generated, and it is not revoked.
func ParseSession(body []byte, newID func() identity.UUID) (app.RegistrySession, error) {
	var issued struct {
		SessionID *string `json:"session_id"`
		sessionFields
	}
	if err := httpapi.Decode(body, &issued); err != nil {
		return app.RegistrySession{}, err
	}
	s := session{sessionFields: issued.sessionFields}
	if issued.SessionID != nil {
		s.SessionID = *issued.SessionID
	} else {
		s.SessionID = string(newID())
	}
	var v validator
	v.check(s.AccessToken == "", "", "access_token is not taken here: it is generated")
	v.check(s.RevokedAt == nil, "", "revoked_at is not taken here: a session is issued to be used")
	entry := s.entry(&v)
	return entry, v.refused()
}

// ParseRuns reads {"runs": […]} with 1 to 200 entries of runs.
func ParseRuns(body []byte) ([]identity.Run, error) {
	var asked struct {
		Runs runList `json:"runs"`
	}
	if err := httpapi.Decode(body, &asked); err != nil {
		return nil, err
	}
	var v validator
	v.check(len(asked.Runs) > 0, "", "runs has 1 to 200 entries")
	runs := make([]identity.Run, len(asked.Runs))
	for i, r := range asked.Runs {
		v.place = fmt.Sprintf("/runs/%d: ", i)
		runs[i] = r.entry(&v)
	}
	return runs, v.refused()
}

type runList []run

// UnmarshalJSONFrom reads at most 200 entries, and counts them while it does: two MiB of
// empty ones would become much more.
func (l *runList) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() != jsontext.KindBeginArray {
		return errNull
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for dec.PeekKind() != jsontext.KindEndArray {
		if len(*l) == maxRuns {
			return errors.New("there are more than 200 runs")
		}
		var r run
		if err := json.UnmarshalDecode(dec, &r); err != nil {
			return err
		}
		*l = append(*l, r)
	}
	_, err := dec.ReadToken()
	return err
}

// refused is nil, or names the first problems without the entries that have them.
func (v *validator) refused() error {
	if len(v.problems) == 0 {
		return nil
	}
	var texts []string
	for _, p := range v.problems {
		var problem *problemError
		if errors.As(p, &problem) {
			texts = append(texts, problem.place+problem.text)
		}
	}
	if more := len(texts) - maxProblems; more > 0 {
		texts = append(texts[:maxProblems], fmt.Sprintf("and %d more", more))
	}
	return refusal.New(refusal.InvalidRequest, strings.Join(texts, "; "))
}
