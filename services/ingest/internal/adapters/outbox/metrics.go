package outbox

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Metrics of the relay. No label names a stream.
type Metrics struct {
	batches *prometheus.CounterVec
	seconds prometheus.Histogram
}

// NewMetrics registers the relay's metrics.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	m := &Metrics{
		batches: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "verbatim_relay_batches_total", Help: "Batches handed to the transport, by result: acknowledged or refused.",
		}, []string{"result"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "verbatim_relay_delivery_seconds", Help: "Time from handing a batch to the transport until its answer.",
			Buckets: prometheus.ExponentialBuckets(0.001, 3, 9),
		}),
	}
	reg.MustRegister(m.batches, m.seconds)
	return m
}

// start begins to measure one delivery; the result ends it.
func (m *Metrics) start() (done func(err error)) {
	timer := prometheus.NewTimer(m.seconds)
	return func(err error) {
		timer.ObserveDuration()
		m.count(err)
	}
}

func (m *Metrics) count(err error) {
	result := "acknowledged"
	if err != nil {
		result = "refused"
	}
	m.batches.WithLabelValues(result).Inc()
}
