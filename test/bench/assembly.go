package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"runtime"
	"runtime/metrics"
	"runtime/pprof"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"verbatim.internal/pkg/contracts/httpapi"
	"verbatim.internal/pkg/domain/trace"
)

// The ways to write a run's trace as JSON, one record a line.
const (
	encodeByLibrary = "JSON library, of finished records"
	encodeRecords   = "assembled from facts in memory"
	encodeStream    = "streamed by the admin API from PostgreSQL"
)

// pageRecords is how many records are written at once, as the admin API does.
const pageRecords = 1000

// encoder writes all records of a run.
type encoder struct {
	name  string
	write func(ctx context.Context, r *storedRun, w io.Writer) error
}

// pass is one writing of the whole run.
type pass struct {
	perSecond float64 // records
	peak      uint64  // bytes of the heap above what was in use before
	written   int64   // bytes
}

// assembly writes the whole run in several ways, on one core: by the JSON library from
// records that are there, which is the least it can cost with it; from facts in memory,
// which is what records cost; and from stored facts through the admin API.
func (b *bench) assembly(ctx context.Context, r *storedRun) ([]assemblyRow, error) {
	encoders := []encoder{
		{encodeByLibrary, writeByLibrary},
		{encodeRecords, writeRecords},
		{encodeStream, func(ctx context.Context, r *storedRun, w io.Writer) error { return b.writeStream(ctx, r, w) }},
	}
	if err := sameBytes(ctx, r, encoders); err != nil {
		return nil, err
	}
	passes := make([][]pass, len(encoders))
	for n := range b.options.rounds {
		b.say("assembly of %d records, round %d of %d", r.size, n+1, b.options.rounds)
		for k := range encoders {
			i := (k + n) % len(encoders)
			p, err := b.pass(ctx, r, encoders[i], fmt.Sprintf("assembly-%d-%d", i, n+1))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", encoders[i].name, err)
			}
			passes[i] = append(passes[i], p)
		}
	}
	rows := make([]assemblyRow, len(encoders))
	for i, e := range encoders {
		rows[i] = newAssemblyRow(r.size, e.name, passes[i], passes[0])
	}
	return rows, nil
}

// sameBytes checks that all write the same trace.
func sameBytes(ctx context.Context, r *storedRun, encoders []encoder) error {
	var want []byte
	for i, e := range encoders {
		sum := sha256.New()
		if err := e.write(ctx, r, sum); err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
		if i == 0 {
			want = sum.Sum(nil)
		} else if !sameSum(sum, want) {
			return fmt.Errorf("%s: it writes other bytes than the JSON library", e.name)
		}
	}
	return nil
}

func sameSum(h hash.Hash, want []byte) bool { return string(h.Sum(nil)) == string(want) }

func (b *bench) pass(ctx context.Context, r *storedRun, e encoder, name string) (pass, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	runtime.GC()
	w := newHeapWriter()
	profile, err := startProfile(b.options.profiles, name)
	if err != nil {
		return pass{}, err
	}
	begun := time.Now()
	if err := e.write(ctx, r, w); err != nil {
		return pass{}, err
	}
	seconds := time.Since(begun).Seconds()
	return pass{perSecond: float64(r.size) / seconds, peak: w.peak(), written: w.written}, profile.stop()
}

// heapWriter forgets what is written to it, and looks at the heap now and then.
type heapWriter struct {
	samples       []metrics.Sample
	before, most  uint64
	written, next int64
}

// heapEvery is after how many bytes it looks.
const heapEvery = 256 << 10

func newHeapWriter() *heapWriter {
	w := &heapWriter{samples: []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}}
	w.look()
	w.before = w.most
	return w
}

// look counts what is in use and what has not been collected yet.
func (w *heapWriter) look() {
	metrics.Read(w.samples)
	w.most = max(w.most, w.samples[0].Value.Uint64())
}

func (w *heapWriter) peak() uint64 { return w.most - w.before }

func (w *heapWriter) Write(p []byte) (int, error) {
	w.written += int64(len(p))
	if w.written >= w.next {
		w.look()
		w.next = w.written + heapEvery
	}
	return len(p), nil
}

func writeByLibrary(_ context.Context, r *storedRun, w io.Writer) error {
	a := r.assembler()
	records := make([]trace.Record, len(r.events))
	for i, e := range r.events {
		records[i] = a.Assemble(int64(i)+1, e)
	}
	enc := jsontext.NewEncoder(w) // ends each record with a line feed
	for i := range r.size {
		record := &records[i%len(records)]
		record.AuditID = trace.AuditID(i + 1)
		if err := json.MarshalEncode(enc, record); err != nil {
			return err
		}
	}
	return nil
}

func writeRecords(_ context.Context, r *storedRun, w io.Writer) error {
	a := r.assembler()
	var lines []byte
	for position := 1; position <= r.size; position++ {
		lines = append(trace.AppendJSON(lines, a.Assemble(int64(position), r.event(position))), '\n')
		if position%pageRecords == 0 || position == r.size {
			if _, err := w.Write(lines); err != nil {
				return err
			}
			lines = lines[:0]
		}
	}
	return nil
}

func (b *bench) writeStream(ctx context.Context, _ *storedRun, w io.Writer) (err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, b.both.auditviewURL+tracePath, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+adminToken)
	request.Header.Set("Accept", httpapi.ContentTypeAuditTrace)
	transport := &http.Transport{DisableCompression: true}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode != http.StatusOK {
		return statusError{code: response.StatusCode}
	}
	// So that a profile can leave out what is not the service's own work.
	pprof.Do(ctx, pprof.Labels("side", "client"), func(context.Context) {
		_, err = io.Copy(w, response.Body)
	})
	return err
}
