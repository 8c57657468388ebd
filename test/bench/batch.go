package main

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"verbatim.internal/pkg/domain/archive"
)

// text is a visible text of about 1 KB, as people and agents write: lines, quotation
// marks, and some characters outside of ASCII.
var text = strings.Repeat("The order was shipped on Friday – to the “old” address.\n", 9) +
	strings.Repeat(`Please answer with "yes" or "no", and say why; the store is open until 18:00. `, 6)

// quoted is text as JSON.
var quoted = func() string {
	b, err := jsontext.AppendQuote(nil, text)
	if err != nil {
		panic(err)
	}
	return string(b)
}()

var completed = string(archive.Completed)

// batch is the events of one append, a column an array. A batch of one is a message of
// the archive's only turn, or the start of it; a larger one is a turn of its own.
type batch struct {
	sequences []int32
	ids       []string
	turns     []string
	kinds     []string
	contents  []*string
	statuses  []*string

	text, quoted *string // of each message
	one          bool    // whether all batches of an archive are one turn
}

func newBatch(size int) *batch {
	return &batch{
		text: &text, quoted: &quoted,
		sequences: make([]int32, size), ids: make([]string, size), turns: make([]string, size),
		kinds: make([]string, size), contents: make([]*string, size), statuses: make([]*string, size),
	}
}

// single tells whether the archive has one turn, which does not end.
func (b *batch) single() bool { return b.one || b.size() == 1 }

func (b *batch) size() int { return len(b.sequences) }

// fill makes the events that follow the sequence last, and returns the bytes of their texts.
func (b *batch) fill(last int) (bytes int) {
	turn := "turn-1"
	if !b.single() {
		turn = "turn-" + strconv.Itoa(last+1)
	}
	for i := range b.sequences {
		sequence := last + i + 1
		b.sequences[i], b.ids[i], b.turns[i] = int32(sequence), "event-"+strconv.Itoa(sequence), turn
		b.contents[i], b.statuses[i] = nil, nil
		switch kind := b.kind(i, sequence); kind {
		case archive.TurnStart:
			b.kinds[i] = string(kind)
		case archive.TurnEnd:
			b.kinds[i], b.statuses[i] = string(kind), &completed
		default:
			b.kinds[i], b.contents[i] = string(kind), b.text
			bytes += len(*b.text)
		}
	}
	return bytes
}

func (b *batch) kind(i, sequence int) archive.Kind {
	switch {
	case sequence == 1, i == 0 && !b.single():
		return archive.TurnStart
	case i > 0 && i == b.size()-1 && !b.single():
		return archive.TurnEnd
	case sequence%2 == 0:
		return archive.UserMessage
	default:
		return archive.AssistantMessage
	}
}

// appendJSON appends the body of the append.
func (b *batch) appendJSON(dst []byte) []byte {
	dst = append(dst, `{"events":[`...)
	for i := range b.sequences {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(dst, `{"event_id":"`...), b.ids[i]...)
		dst = strconv.AppendInt(append(dst, `","sequence":`...), int64(b.sequences[i]), 10)
		dst = append(append(dst, `,"client_turn_id":"`...), b.turns[i]...)
		dst = append(append(dst, `","kind":"`...), b.kinds[i]...)
		dst = append(dst, '"')
		if b.contents[i] != nil {
			dst = append(append(dst, `,"content":`...), *b.quoted...)
		}
		if b.statuses[i] != nil {
			dst = append(append(dst, `,"status":"`...), *b.statuses[i]...)
			dst = append(dst, '"')
		}
		dst = append(dst, '}')
	}
	return append(dst, `]}`...)
}

// fits tells whether an archive with this last sequence and these bytes of text has room for one more batch.
func (b *batch) fits(last, bytes int) bool {
	return last+b.size() <= archive.MaxEvents && bytes+b.size()*len(*b.text) <= archive.MaxArchiveBytes
}
