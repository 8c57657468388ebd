package cloudevent

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// ErrBatch is a body that is no batch of events. It never carries a part of the body.
var ErrBatch = errors.New("cloudevent: not a JSON batch of events")

// EncodeBatch validates the events and writes them as one JSON array, in order,
// without HTML escapes. The strings inside data keep their bytes.
func EncodeBatch(events []Event) ([]byte, error) {
	for i, e := range events {
		if err := e.Validate(); err != nil {
			return nil, fmt.Errorf("event %d: %w", i, err)
		}
	}
	body, err := json.Marshal(events, json.FormatNilSliceAsNull(false), jsontext.PreserveRawStrings(true))
	if err != nil {
		return nil, ErrBatch
	}
	return body, nil
}

// DecodeBatch reads what EncodeBatch wrote and validates the attributes of each event.
//
// Duplicate names, invalid UTF-8 and trailing data are refused. Attributes that it
// does not know are passed over, as CloudEvents 1.0 asks of a receiver. One bad event
// refuses the batch: the body was damaged or comes from somebody else.
func DecodeBatch(body []byte) ([]Event, error) {
	var events []Event
	if err := json.Unmarshal(body, &events); err != nil {
		return nil, ErrBatch
	}
	if events == nil { // null is no batch
		return nil, ErrBatch
	}
	for i, e := range events {
		if err := e.Validate(); err != nil {
			return nil, fmt.Errorf("event %d: %w", i, err)
		}
	}
	return events, nil
}
