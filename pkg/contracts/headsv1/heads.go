// Package headsv1 holds the message by which ingest's relay asks whether anything was
// lost on the way, version 1: how far streams are that were sent in full. It is about
// streams and belongs to none: its own stream kind is "relay", its stream id names the
// partition, and its version means nothing. Marshal and Unmarshal both validate; errors
// carry no values.
package headsv1

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// StreamKind is the kind of the stream that a message names, and Type its type.
const (
	StreamKind = "relay"
	Type       = "verbatim.relay.heads.v1"
)

// MaxHeads bounds the streams of one message.
const MaxHeads = 500

// maxVersion is the greatest stream version; see package cloudevent.
const maxVersion = 1<<31 - 1

// ErrData is data that is not the JSON of heads. It never carries a part of the data.
var ErrData = errors.New("headsv1: data is not heads")

var (
	kindPattern = regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}$`)
	idPattern   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$`)
)

// Heads are streams of one partition with the versions up to which they were sent.
type Heads struct {
	Heads []Head `json:"heads"`
}

// Head is one stream's.
type Head struct {
	Kind    string `json:"kind"`
	ID      string `json:"id"`
	Version int64  `json:"version"`
}

// StreamID returns the stream id of the messages of a partition.
func StreamID(partition int) string { return fmt.Sprintf("heads-%02d", partition) }

// Validate reports whether there are 1 to MaxHeads heads, each with a stream's name and a
// version from 1 up.
func (h Heads) Validate() error {
	if len(h.Heads) == 0 || len(h.Heads) > MaxHeads {
		return ErrData
	}
	for _, head := range h.Heads {
		if !kindPattern.MatchString(head.Kind) || !idPattern.MatchString(head.ID) || head.Version < 1 || head.Version > maxVersion {
			return ErrData
		}
	}
	return nil
}

// Marshal validates heads and returns their JSON.
func Marshal(h Heads) (jsontext.Value, error) {
	if err := h.Validate(); err != nil {
		return nil, err
	}
	data, err := json.Marshal(h)
	if err != nil {
		return nil, ErrData
	}
	return data, nil
}

// Unmarshal reads and validates heads, with no member that is not declared.
func Unmarshal(data jsontext.Value) (Heads, error) {
	var h Heads
	if err := json.Unmarshal(data, &h, json.RejectUnknownMembers(true)); err != nil {
		return Heads{}, ErrData
	}
	return h, h.Validate()
}
