package execution

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"verbatim.internal/pkg/domain/canonical"
	"verbatim.internal/pkg/domain/timestamp"
)

// AttemptFields are one callback attempt as it was sent.
type AttemptFields struct {
	AttemptID   string
	EventID     string
	EventType   string
	URL         string
	Status      jsontext.Value
	AttemptedAt string
}

// Attempt is one attempt to deliver a callback: what may be stored of it.
type Attempt struct {
	AttemptID string
	// Facts is a canonical JSON object; see [AttemptFacts].
	Facts jsontext.Value
	// Position numbers the execution's attempts from 1; 0 until it is stored.
	Position int
}

// AttemptFacts is what is kept of an attempt. The path of a webhook is a secret, so of
// its URL there is no more than where it leads, and by which it can be recognised.
type AttemptFacts struct {
	EventID     string         `json:"event_id"`
	EventType   string         `json:"event_type"`
	Scheme      string         `json:"scheme"`
	Host        string         `json:"host"`
	Port        int            `json:"port"`
	URLSHA256   string         `json:"url_sha256"` // of the whole URL, in hexadecimal
	Status      jsontext.Value `json:"status"`     // a name, or a number from 0 to 999
	AttemptedAt string         `json:"attempted_at"`
}

// NewAttempts validates the attempts of one request, 1 to 200, all or none (InvalidRequest).
func NewAttempts(fields []AttemptFields) ([]Attempt, error) {
	if len(fields) == 0 || len(fields) > MaxBatch {
		return nil, errAttempts
	}
	attempts := make([]Attempt, len(fields))
	for i := range fields {
		var ok bool
		if attempts[i], ok = newAttempt(&fields[i]); !ok {
			return nil, errAttempt
		}
	}
	return attempts, nil
}

func newAttempt(f *AttemptFields) (Attempt, bool) {
	at, timed := timestamp.Normalize(f.AttemptedAt)
	to, parsed := ParseEndpoint(f.URL)
	status, known := attemptStatus(f.Status)
	if !timed || !parsed || !known || !IsName(f.AttemptID) || !IsName(f.EventID) || !IsEventType(f.EventType) {
		return Attempt{}, false
	}
	facts, err := canonical.JSON(AttemptFacts{
		EventID: f.EventID, EventType: f.EventType, Scheme: to.Scheme, Host: to.Host, Port: to.Port,
		URLSHA256: hex.EncodeToString(to.SHA256[:]), Status: status, AttemptedAt: at,
	})
	return Attempt{AttemptID: f.AttemptID, Facts: facts}, err == nil
}

// attemptStatus returns a status in its canonical spelling.
func attemptStatus(raw jsontext.Value) (jsontext.Value, bool) {
	const most = 999
	if raw.Kind() != jsontext.KindString && raw.Kind() != jsontext.KindNumber {
		return nil, false
	}
	status, what := filterScalar(raw)
	var n int
	return status, what == keep &&
		(status.Kind() == jsontext.KindString || json.Unmarshal(status, &n) == nil && 0 <= n && n <= most)
}

// AttemptHistory is what attempts are judged against, read under the execution's lock.
type AttemptHistory struct {
	// LastPosition is the position of the execution's last attempt, 0 when it has none.
	LastPosition int
	// Stored has the facts of those attempts whose ids the execution has.
	Stored map[string]jsontext.Value
}

// RecordAttempts decides which attempts are new to the execution and numbers them; the
// others are stored already, exactly so. It refuses all with ErrAttempt for an id that
// stands for something else, stored or in the request.
func RecordAttempts(attempts []Attempt, h AttemptHistory) (fresh []Attempt, err error) {
	seen := make(map[string]jsontext.Value, len(attempts))
	for _, a := range attempts {
		stored, known := h.Stored[a.AttemptID]
		if !known {
			stored, known = seen[a.AttemptID]
		}
		if known {
			if !bytes.Equal(stored, a.Facts) {
				return nil, ErrAttempt
			}
			continue
		}
		seen[a.AttemptID] = a.Facts
		a.Position = h.LastPosition + len(fresh) + 1
		fresh = append(fresh, a)
	}
	return fresh, nil
}

// Endpoint is what is kept of a callback's URL.
type Endpoint struct {
	Scheme string // http or https
	Host   string // in lower case; an IPv6 address is in brackets
	Port   int    // the scheme's own where the URL names none
	SHA256 [sha256.Size]byte
}
