package consumer

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"verbatim.internal/services/auditview/internal/readmodel"
)

// Metrics counts what becomes of batches and messages.
type Metrics struct {
	messages *prometheus.CounterVec
	refused  *prometheus.CounterVec
	duration prometheus.Histogram
	now      func() time.Time
}

// NewMetrics registers the metrics with reg; now is the clock.
func NewMetrics(reg prometheus.Registerer, now func() time.Time) *Metrics {
	m := &Metrics{
		messages: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "verbatim_auditview_projection_messages_total",
			Help: "Messages by what became of them: applied, skipped, parked or refused.",
		}, []string{"outcome"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "verbatim_auditview_projection_batches_refused_total",
			Help: "Batches that were not acknowledged, by reason: gap, failed or malformed.",
		}, []string{"reason"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "verbatim_auditview_projection_batch_duration_seconds",
			Help:    "How long batches took.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16),
		}),
		now: now,
	}
	reg.MustRegister(m.messages, m.refused, m.duration)
	return m
}

func (m *Metrics) count(s readmodel.Summary) {
	m.messages.WithLabelValues("applied").Add(float64(s.Applied))
	m.messages.WithLabelValues("skipped").Add(float64(s.Skipped))
	m.messages.WithLabelValues("parked").Add(float64(s.Parked))
	m.messages.WithLabelValues("refused").Add(float64(s.Refused))
}

func (m *Metrics) refuse(reason string) { m.refused.WithLabelValues(reason).Inc() }
