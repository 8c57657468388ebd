package cloudevent

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Values that are the same in every event.
const (
	SpecVersion     = "1.0"
	Source          = "verbatim/ingest"
	DataContentType = "application/json"
	// BatchContentType is the media type of what EncodeBatch writes.
	BatchContentType = "application/cloudevents-batch+json"
)

// MaxVersion is the greatest stream version: the CloudEvents type Integer ends there.
const MaxVersion = math.MaxInt32

var (
	kindPattern  = regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}$`)
	idPattern    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$`)
	typePattern  = regexp.MustCompile(`^[a-z][a-z0-9_]*(\.[a-z0-9_]+){1,7}$`)
	tracePattern = regexp.MustCompile(`^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)
)

// Event is one fact that ingest committed, with the CloudEvents 1.0 attributes.
type Event struct {
	SpecVersion     string    `json:"specversion"`
	ID              string    `json:"id"`
	Source          string    `json:"source"`
	Type            string    `json:"type"`
	Subject         string    `json:"subject"`
	Time            time.Time `json:"time"`
	DataContentType string    `json:"datacontenttype"`
	// StreamKind and StreamID name the stream: "archive" and a conversation id, "run" and a
	// run id, "registry_change" and a change id.
	StreamKind string `json:"streamkind"`
	StreamID   string `json:"streamid"`
	// StreamVersion is the version that the stream has with this event, from 1 up.
	StreamVersion int64 `json:"streamversion"`
	// TraceParent is the W3C trace context of the request that committed it, or empty.
	TraceParent string         `json:"traceparent,omitzero"`
	Data        jsontext.Value `json:"data"`
}

// New returns an event with the fixed attributes, its id and its subject set.
//
// part is 0, or from 1 up the number of a snapshot's part. The time is brought to UTC.
func New(streamKind, streamID string, version int64, part int, eventType string, at time.Time, data jsontext.Value) Event {
	return Event{
		SpecVersion: SpecVersion, ID: ID(streamKind, streamID, version, part), Source: Source,
		Type: eventType, Subject: streamID, Time: at.UTC(), DataContentType: DataContentType,
		StreamKind: streamKind, StreamID: streamID, StreamVersion: version, Data: data,
	}
}

// ID returns the id of an event: kind/stream/version, and /part for the parts of a snapshot.
func ID(streamKind, streamID string, version int64, part int) string {
	id := streamKind + "/" + streamID + "/" + strconv.FormatInt(version, 10)
	if part > 0 {
		id += "/" + strconv.Itoa(part)
	}
	return id
}

// Part returns the number of a snapshot's part, or 0 for an event that is no part.
func (e Event) Part() int {
	prefix := ID(e.StreamKind, e.StreamID, e.StreamVersion, 0) + "/"
	digits, ok := strings.CutPrefix(e.ID, prefix)
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil || n < 1 {
		return 0
	}
	return int(n)
}

// AttributeError is an attribute of an event that breaks its rule. It carries no value.
type AttributeError struct {
	Attribute string
	Rule      string
}

func (e *AttributeError) Error() string { return "cloudevent: " + e.Attribute + " " + e.Rule }

// Validate reports every attribute that breaks its rule, as joined AttributeErrors.
// Of the data it asks only that it is JSON.
func (e Event) Validate() error {
	var errs []error
	check := func(ok bool, attribute, rule string) {
		if !ok {
			errs = append(errs, &AttributeError{attribute, rule})
		}
	}
	check(e.SpecVersion == SpecVersion, "specversion", "must be "+SpecVersion)
	check(e.Source == Source, "source", "must be "+Source)
	check(e.DataContentType == DataContentType, "datacontenttype", "must be "+DataContentType)
	check(len(e.Type) <= 128 && typePattern.MatchString(e.Type), "type", "must be a dotted lower-case name")
	check(e.Subject == e.StreamID, "subject", "must equal streamid")
	check(kindPattern.MatchString(e.StreamKind), "streamkind", "must be a lower-case word")
	check(idPattern.MatchString(e.StreamID), "streamid", "must be an identifier")
	check(e.StreamVersion >= 1 && e.StreamVersion <= MaxVersion, "streamversion", fmt.Sprintf("must be from 1 to %d", MaxVersion))
	check(e.ID == ID(e.StreamKind, e.StreamID, e.StreamVersion, e.Part()), "id", "must name the stream, the version and the part")
	check(!e.Time.IsZero() && e.Time.Location() == time.UTC, "time", "must be in UTC")
	check(e.TraceParent == "" || tracePattern.MatchString(e.TraceParent), "traceparent", "must be a W3C trace context")
	check(len(e.Data) > 0 && e.Data.IsValid(), "data", "must be JSON")
	return errors.Join(errs...)
}
