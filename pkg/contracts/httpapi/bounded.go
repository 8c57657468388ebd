package httpapi

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The contract's counts. They are asked for while decoding: two MiB of empty
// elements would become hundreds of MiB before a rule could count them.
const (
	maxMembers     = 64
	maxBatchEvents = 50
)

type (
	memberList[T any] []T
	eventList         []AppendEvent
	labels            map[string]string
)

// UnmarshalJSONFrom reads at most 64 elements.
func (l *memberList[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	return decodeList((*[]T)(l), dec, maxMembers)
}

// UnmarshalJSONFrom reads at most 50 elements.
func (l *eventList) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	return decodeList((*[]AppendEvent)(l), dec, maxBatchEvents)
}

// UnmarshalJSONFrom reads at most 64 members.
func (l *labels) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() != jsontext.KindBeginObject {
		return ErrInvalid
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	out := labels{}
	for dec.PeekKind() != jsontext.KindEndObject {
		var key, value string
		if err := json.UnmarshalDecode(dec, &key); err != nil {
			return err
		}
		if err := json.UnmarshalDecode(dec, &value); err != nil {
			return err
		}
		if len(out) == maxMembers {
			return ErrInvalid
		}
		out[key] = value
	}
	*l = out
	_, err := dec.ReadToken()
	return err
}

// decodeList reads a list of at most limit elements, each as strictly as the whole.
func decodeList[T any](l *[]T, dec *jsontext.Decoder, limit int) error {
	if dec.PeekKind() != jsontext.KindBeginArray {
		return ErrInvalid
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	out := []T{}
	for dec.PeekKind() != jsontext.KindEndArray {
		if len(out) == limit {
			return ErrInvalid
		}
		var v T
		if err := json.UnmarshalDecode(dec, &v); err != nil {
			return err
		}
		out = append(out, v)
	}
	*l = out
	_, err := dec.ReadToken()
	return err
}
