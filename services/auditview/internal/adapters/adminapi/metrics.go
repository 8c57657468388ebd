package adminapi

import (
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/prometheus/client_golang/prometheus"
)

// Metrics measures requests by route, never by path.
type Metrics struct {
	duration *prometheus.HistogramVec
	now      func() time.Time
}

// NewMetrics registers the metrics with reg; now is the clock.
func NewMetrics(reg prometheus.Registerer, now func() time.Time) *Metrics {
	m := &Metrics{
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "verbatim_auditview_http_request_duration_seconds",
			Help:    "How long requests took.",
			Buckets: prometheus.DefBuckets,
		}, []string{"method", "route", "status"}),
		now: now,
	}
	reg.MustRegister(m.duration)
	return m
}

func (m *Metrics) measure(c *gin.Context) {
	begin := m.now()
	c.Next()
	route, method := c.FullPath(), "other"
	if route == "" {
		route = "unmatched"
	}
	switch c.Request.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		method = c.Request.Method
	}
	m.duration.WithLabelValues(method, route, strconv.Itoa(c.Writer.Status())).Observe(m.now().Sub(begin).Seconds())
}
