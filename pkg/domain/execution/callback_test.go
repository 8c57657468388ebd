package execution_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"verbatim.internal/pkg/domain/execution"
	"verbatim.internal/pkg/domain/refusal"
)

const hook = "https://Ada:hunter2@Hooks.Example.com:8443/services/T0/B0/zzz?token=x#y"

func attemptFields(id string) execution.AttemptFields {
	return execution.AttemptFields{
		AttemptID: id, EventID: "e-1", EventType: "task.completed", URL: hook, Status: jsontext.Value(`502`), AttemptedAt: "2026-06-08T11:00:03+02:00",
	}
}

func newAttempts(t *testing.T, fields ...execution.AttemptFields) []execution.Attempt {
	t.Helper()
	attempts, err := execution.NewAttempts(fields)
	if err != nil {
		t.Fatalf("refused: %v", err)
	}
	return attempts
}

func TestOfAURLItsEndpointIsKept(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		hook:                         "https hooks.example.com 8443",
		"http://example.com":         "http example.com 80",
		"HTTPS://example.com/":       "https example.com 443",
		"https://example.com:/x":     "https example.com 443",
		"http://10.0.0.1:8080?q=a@b": "http 10.0.0.1 8080",
		"http://[::1]:9/x":           "http [::1] 9",
		"http://[2001:DB8::a]":       "http [2001:db8::a] 80",
		"http://a_b.svc.local.:1#@x": "http a_b.svc.local. 1",
		"http://u@x@host/":           "http host 80",
		"http://localhost:65535":     "http localhost 65535",
		`http://host\@evil.com/`:     "http host 80",
		"https://xn--bcher-kva.example/" + strings.Repeat("p", 8000): "https xn--bcher-kva.example 443",
	} {
		got, ok := execution.ParseEndpoint(url)
		if s := fmt.Sprint(got.Scheme, " ", got.Host, " ", got.Port); !ok || s != want || got.SHA256 != sha256.Sum256([]byte(url)) {
			t.Errorf("%.40s: got %s, %v", url, s, ok)
		}
	}
	for _, url := range []string{
		"", "example.com", "/path", "ftp://example.com", "https:example.com", "https://", "https:///x", "https://:80/", "https://user@/", "https://a b.com", "https://a.com/x y",
		"https://a.com:0", "https://a.com:65536", "https://a.com:-1", "https://a.com:+1", "https://a.com:8x", "https://a.com:080", "https://a..com", "https://-a.com", "https://a-.com",
		"https://[::1", "https://[1]", "https://[::g]", "https://::1/", "https://bücher.example", "https://a%41.com", "https://a.com\n", "https://a.com/\x7f",
		"https://" + strings.Repeat("a", 64) + ".com", "https://" + strings.Repeat("a.", 127) + "com", "https://a.com/" + strings.Repeat("p", 8192),
		"https://sk-ant-api03-" + strings.Repeat("a1b2c3d4", 5) + ".example",
		"https://AIza" + "SyA-Zk3vQ9-xT_2mLw8Rb5Yc7Nd1Hf4Jg6K" + ".example",
	} {
		if got, ok := execution.ParseEndpoint(url); ok {
			t.Errorf("%.60q: taken as %+v", url, got)
		}
	}
}

func FuzzParseEndpoint(f *testing.F) {
	for _, url := range []string{hook, "http://[::1]:9/x", "HTTP://a.b:80", `http://h\@e/`} {
		f.Add(url)
	}
	f.Fuzz(func(t *testing.T, url string) {
		e, ok := execution.ParseEndpoint(url)
		if !ok {
			return
		}
		if e.Host == "" || e.Port < 1 || e.Port > 65535 || len(e.Host) > 253 || strings.ContainsAny(e.Host, "/?#@ \\") {
			t.Fatalf("%q: %+v", url, e)
		}
		again, ok := execution.ParseEndpoint(fmt.Sprintf("%s://%s:%d", e.Scheme, e.Host, e.Port))
		if !ok || again.Host != e.Host || again.Port != e.Port || again.Scheme != e.Scheme {
			t.Fatalf("%q: %+v is no endpoint by itself", url, e)
		}
	})
}

func TestAnAttemptIsKeptWithoutItsURL(t *testing.T) {
	t.Parallel()
	hash := sha256.Sum256([]byte(hook))
	want := `{"attempted_at":"2026-06-08T09:00:03Z","event_id":"e-1","event_type":"task.completed","host":"hooks.example.com","port":8443,"scheme":"https","status":%s,"url_sha256":"` + hex.EncodeToString(hash[:]) + `"}`
	for sent, kept := range map[string]string{`502`: `502`, `2e2`: `200`, `0`: `0`, `"delivered"`: `"delivered"`, `"time\u006fut"`: `"timeout"`} {
		f := attemptFields("a-1")
		f.Status = jsontext.Value(sent)
		if a := newAttempts(t, f)[0]; string(a.Facts) != fmt.Sprintf(want, kept) || a.AttemptID != "a-1" {
			t.Errorf("%s: got %s", sent, a.Facts)
		}
	}
}

func TestAttemptsAreRefusedWhole(t *testing.T) {
	t.Parallel()
	broken := map[string]func(*execution.AttemptFields){
		"a type":    func(f *execution.AttemptFields) { f.EventType = "task" },
		"a time":    func(f *execution.AttemptFields) { f.AttemptedAt = "" },
		"a URL":     func(f *execution.AttemptFields) { f.URL = "hooks.example.com" },
		"no status": func(f *execution.AttemptFields) { f.Status = nil },
	}
	for _, status := range []string{`null`, `true`, `{}`, `[]`, `-1`, `1000`, `200.5`, `"two words"`, `""`, `"` + secret + `"`} {
		broken["status "+status] = func(f *execution.AttemptFields) { f.Status = jsontext.Value(status) }
	}
	for what, name := range unnamed() {
		broken["id "+what] = func(f *execution.AttemptFields) { f.AttemptID = name }
		broken["event "+what] = func(f *execution.AttemptFields) { f.EventID = name }
	}
	for name, breaks := range broken {
		f := attemptFields("a-2")
		breaks(&f)
		if _, err := execution.NewAttempts([]execution.AttemptFields{attemptFields("a-1"), f}); refusal.CodeOf(err) != refusal.InvalidRequest {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for _, n := range []int{0, 201} {
		_, err := execution.NewAttempts(make([]execution.AttemptFields, n))
		wantCode(t, err, refusal.InvalidRequest)
	}
}

func TestRecordAttemptsDecides(t *testing.T) {
	t.Parallel()
	both := newAttempts(t, attemptFields("a-1"), attemptFields("a-2"))
	f := attemptFields("a-1")
	f.URL = strings.Replace(hook, "zzz", "yyy", 1)
	other := newAttempts(t, f)[0]
	stored := map[string]jsontext.Value{"a-1": both[0].Facts}
	fresh, err := execution.RecordAttempts(append(both, both[1]), execution.AttemptHistory{LastPosition: 4, Stored: stored})
	if err != nil || len(fresh) != 1 || fresh[0].AttemptID != "a-2" || fresh[0].Position != 5 {
		t.Errorf("got %+v, %v", fresh, err)
	}
	for name, attempts := range map[string][]execution.Attempt{"stored": {both[1], other}, "in the request": {other, both[0]}} {
		_, err := execution.RecordAttempts(attempts, execution.AttemptHistory{Stored: map[string]jsontext.Value{"a-1": stored["a-1"]}})
		if refusal.CodeOf(err) != refusal.RunConflict {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
