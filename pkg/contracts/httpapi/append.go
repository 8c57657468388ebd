package httpapi

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strings"
	"unicode/utf8"
)

// Append is the body of an append.
type Append struct {
	Events eventList `json:"events"`
}

// AppendEvent is one event as submitted: what is absent is nil.
type AppendEvent struct {
	EventID         string   `json:"event_id"`
	Sequence        Sequence `json:"sequence"`
	ClientTurnID    string   `json:"client_turn_id"`
	Kind            string   `json:"kind"`
	Content         *string  `json:"content"`
	Status          *string  `json:"status"`
	RunID           *string  `json:"run_id"`
	MemberSessionID *string  `json:"member_session_id"`
}

// DecodeAppend reads an append; the kinds and their fields are the rules' business.
//
// What agents usually write is read in one pass. Whatever that does not know, right or
// wrong, is read as every other body, and means what it means there.
func DecodeAppend(data []byte) (Append, error) {
	if a, ok := scanAppend(data); ok {
		return a, nil
	}
	var a Append
	err := Decode(data, &a)
	return a, err
}

// appendScanner reads {"events":[…]} with the declared names, each at most once, texts
// without surrogates in escapes, and sequences written as plain digits. Once it met
// anything else it is not ok.
type appendScanner struct {
	data []byte
	at   int
	ok   bool
	text strings.Builder // of all strings, one after the other
}

// span is where a string stands in the scanner's text.
type span struct{ from, to int }

// The fields of an event, in the order of their spans.
const (
	fieldEventID = iota
	fieldTurnID
	fieldKind
	fieldContent
	fieldStatus
	fieldRunID
	fieldMember
	fieldSequence
	fieldCount
)

// scannedEvent is an event whose strings are not cut out yet.
type scannedEvent struct {
	spans    [fieldSequence]span
	sequence Sequence
	seen     [fieldCount]bool
}

// maxScanned bounds the bodies that are read in one pass, and so what that may allocate
// for nothing: the texts of a batch have 256 KiB at most.
const maxScanned = 512 << 10

func scanAppend(data []byte) (Append, bool) {
	if len(data) > maxScanned || !utf8.Valid(data) {
		return Append{}, false
	}
	s := &appendScanner{data: data, ok: true}
	s.text.Grow(len(data))
	var scanned [maxBatchEvents]scannedEvent
	n := 0
	s.expect('{')
	s.name(`"events"`)
	s.expect('[')
	for more := !s.accept(']'); s.ok && more; more = s.more(']') {
		if n == maxBatchEvents {
			return Append{}, false
		}
		s.event(&scanned[n])
		n++
	}
	s.expect('}')
	s.space()
	if !s.ok || s.at != len(data) {
		return Append{}, false
	}
	return s.cut(scanned[:n]), true
}

// event reads one event.
func (s *appendScanner) event(e *scannedEvent) {
	s.expect('{')
	for more := !s.accept('}'); s.ok && more; more = s.more('}') {
		field := s.field()
		if !s.ok || e.seen[field] {
			s.ok = false
			return
		}
		e.seen[field] = true
		s.expect(':')
		if field == fieldSequence {
			e.sequence = s.number()
		} else {
			e.spans[field] = s.string()
		}
	}
}

// field reads a field's name.
func (s *appendScanner) field() int {
	s.expect('"')
	rest := s.data[s.at:]
	end := bytes.IndexByte(rest, '"')
	if !s.ok || end < 0 {
		s.ok = false
		return 0
	}
	s.at += end + 1
	switch string(rest[:end]) {
	case "event_id":
		return fieldEventID
	case "sequence":
		return fieldSequence
	case "client_turn_id":
		return fieldTurnID
	case "kind":
		return fieldKind
	case "content":
		return fieldContent
	case "status":
		return fieldStatus
	case "run_id":
		return fieldRunID
	case "member_session_id":
		return fieldMember
	}
	s.ok = false
	return 0
}

// number reads an integer of 1 to 9 digits that does not begin with a zero.
func (s *appendScanner) number() Sequence {
	s.space()
	const most = 9
	n, from := Sequence(0), s.at
	for s.at < len(s.data) && s.data[s.at] >= '0' && s.data[s.at] <= '9' && s.at-from <= most {
		n = 10*n + Sequence(s.data[s.at]-'0')
		s.at++
	}
	if digits := s.at - from; digits == 0 || digits > most || s.data[from] == '0' {
		s.ok = false
	}
	return n
}

// string reads a string into the text.
func (s *appendScanner) string() span {
	s.expect('"')
	from := s.text.Len()
	for s.ok {
		plain := s.data[s.at:]
		n := plainBytes(plain)
		s.text.Write(plain[:n])
		s.at += n
		switch {
		case n == len(plain) || plain[n] < ' ':
			s.ok = false
		case plain[n] == '"':
			s.at++
			return span{from, s.text.Len()}
		default:
			s.escape()
		}
	}
	return span{}
}

// escape reads what begins with a backslash.
func (s *appendScanner) escape() {
	if s.at+1 >= len(s.data) {
		s.ok = false
		return
	}
	c := s.data[s.at+1]
	s.at += 2
	switch c {
	case '"', '\\', '/':
	case 'n':
		c = '\n'
	case 't':
		c = '\t'
	case 'r':
		c = '\r'
	default: // the others are rare in visible texts
		s.ok = false
		return
	}
	s.text.WriteByte(c)
}

// plainBytes counts the bytes before the first that ends a string, begins an escape, or
// is a control character.
func plainBytes(b []byte) int {
	const (
		ones  = 0x0101010101010101
		highs = 0x8080808080808080
	)
	n := 0
	for ; n+8 <= len(b); n += 8 {
		x := binary.LittleEndian.Uint64(b[n:])
		quote, slash := x^('"'*ones), x^('\\'*ones)
		found := ((x-' '*ones)&^x | (quote-ones)&^quote | (slash-ones)&^slash) & highs
		if found != 0 {
			return n + bits.TrailingZeros64(found)/8 // the lowest is exact, whatever was borrowed above it
		}
	}
	for ; n < len(b); n++ {
		if c := b[n]; c < ' ' || c == '"' || c == '\\' {
			return n
		}
	}
	return n
}

// name reads a name, which is given with its quotes, and the colon.
func (s *appendScanner) name(quoted string) {
	s.space()
	if !bytes.HasPrefix(s.data[s.at:], []byte(quoted)) {
		s.ok = false
		return
	}
	s.at += len(quoted)
	s.expect(':')
}

// more reports whether another element follows; it reads the comma, or the end.
func (s *appendScanner) more(end byte) bool {
	if s.accept(',') {
		return true
	}
	s.expect(end)
	return false
}

func (s *appendScanner) expect(c byte) {
	if !s.accept(c) {
		s.ok = false
	}
}

// accept reads c, after white space, if it comes next.
func (s *appendScanner) accept(c byte) bool {
	s.space()
	if s.at == len(s.data) || s.data[s.at] != c {
		return false
	}
	s.at++
	return true
}

func (s *appendScanner) space() {
	for s.at < len(s.data) {
		switch s.data[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}

// cut gives the events their strings.
func (s *appendScanner) cut(scanned []scannedEvent) Append {
	text := s.text.String()
	events := make(eventList, len(scanned))
	optional := make([]string, 0, len(scanned)*(fieldSequence-fieldContent))
	for i := range scanned {
		e, out := &scanned[i], &events[i]
		cut := func(field int) string { return text[e.spans[field].from:e.spans[field].to] }
		out.EventID, out.ClientTurnID, out.Kind, out.Sequence = cut(fieldEventID), cut(fieldTurnID), cut(fieldKind), e.sequence
		for _, o := range []struct {
			field int
			into  **string
		}{{fieldContent, &out.Content}, {fieldStatus, &out.Status}, {fieldRunID, &out.RunID}, {fieldMember, &out.MemberSessionID}} {
			if e.seen[o.field] {
				optional = append(optional, cut(o.field))
				*o.into = &optional[len(optional)-1]
			}
		}
	}
	return Append{Events: events}
}
