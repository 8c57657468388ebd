package httpapi_test

import (
	"fmt"
	"strings"
	"testing"

	"verbatim.internal/pkg/contracts/httpapi"
)

// BenchmarkDecodeAppend decodes 50 messages of a kilobyte; a text that says
// "null" makes the decoder look for one a second time.
func BenchmarkDecodeAppend(b *testing.B) {
	for name, sentence := range map[string]string{
		"plain":     "Every word that was said. ",
		"says null": "The value is null, today. ",
		"escapes":   `A line.\n\tAnd "quoted".\\ `,
		"CJK":       "会話の全文。",
	} {
		text := strings.Repeat(sentence, 1+1024/len(sentence))[:1024]
		text = strings.ToValidUTF8(strings.TrimRight(text, `\`), "")
		events := make([]string, 50)
		for i := range events {
			events[i] = fmt.Sprintf(
				`{"event_id":"event-%d","sequence":%d,"client_turn_id":"turn-1","kind":"assistant_message","content":%q}`, i+1, i+1, text)
		}
		body := []byte(`{"events":[` + strings.Join(events, ",") + `]}`)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if a, err := httpapi.DecodeAppend(body); err != nil || len(a.Events) != len(events) {
					b.Fatalf("%d events, %v", len(a.Events), err)
				}
			}
		})
	}
}
