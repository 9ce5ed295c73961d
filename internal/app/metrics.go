package app

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"svc/internal/actor"
	"svc/internal/config"
)

// metrics counts requests, and collects the state of the database, the queue and
// other parts at each scrape.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	git      *prometheus.CounterVec
}

func newMetrics(s *Server) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "svc_http_requests_total", Help: "Requests answered.",
		}, []string{"method", "route", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "svc_http_request_seconds", Help: "Time to answer a request.",
			Buckets: requestBuckets(),
		}, []string{"method", "route"}),
		git: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "svc_git_requests_total", Help: "Requests of git clients by outcome.",
		}, []string{"protocol", "service", "outcome"}),
	}
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "svc_build_info", Help: "The running release."}, []string{"version", "revision"})
	info.WithLabelValues(config.Version(), config.Revision()).Set(1)
	m.registry.MustRegister(m.requests, m.seconds, m.git, info, parts{s},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// requestBuckets returns the bounds of the histogram of response times, in seconds.
func requestBuckets() []float64 {
	return []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
}

// knownMethods limits the values of the method label.
var knownMethods = map[string]bool{"GET": true, "HEAD": true, "POST": true, "PUT": true, "PATCH": true, "DELETE": true, "OPTIONS": true}

func (m *metrics) request(method, route string, status int, took time.Duration) {
	if !knownMethods[method] {
		method = "other"
	}
	m.requests.WithLabelValues(method, route, strconv.Itoa(status)).Inc()
	m.seconds.WithLabelValues(method, route).Observe(took.Seconds())
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// parts is a collector that reads the state of the database and the queue at each
// scrape.
type parts struct{ s *Server }

var (
	poolOpen  = prometheus.NewDesc("svc_db_connections", "Open connections.", []string{"pool", "state"}, nil)
	poolWaits = prometheus.NewDesc("svc_db_waits_total", "How often a query waited for a connection.", []string{"pool"}, nil)
	poolWait  = prometheus.NewDesc("svc_db_wait_seconds_total", "How long queries waited for a connection.", []string{"pool"}, nil)
	work      = prometheus.NewDesc("svc_queue_work", "Background jobs by state.", []string{"state", "kind"}, nil)
	partUp    = prometheus.NewDesc("svc_dependency_up", "Whether a service that this node uses responds.", []string{"dependency"}, nil)
	nodeInfo  = prometheus.NewDesc("svc_node_info", "This node.", []string{"node", "version", "schema"}, nil)
	nodeAge   = prometheus.NewDesc("svc_node_contact_age_seconds", "Time since a node of the instance reported itself, by its name.", []string{"node"}, nil)
	ready     = prometheus.NewDesc("svc_node_ready", "Whether this node is ready for requests: 0 while it stops.", nil, nil)
	cacheSize = prometheus.NewDesc("svc_git_cache_bytes", "Size of the cache of a storage in an object store.", []string{"storage"}, nil)
	cacheN    = prometheus.NewDesc("svc_git_cache_repositories", "Repositories in the cache of a storage in an object store.", []string{"storage"}, nil)
	cacheMost = prometheus.NewDesc("svc_git_cache_limit_bytes", "Size that the cache of a storage in an object store may have.", []string{"storage"}, nil)
	cacheUsed = prometheus.NewDesc("svc_git_cache_pinned_bytes", "Size of the repositories in the cache that are in use and cannot be removed.", []string{"storage"}, nil)
	cacheBusy = prometheus.NewDesc("svc_git_cache_pinned_repositories", "Repositories in the cache that are in use and cannot be removed.", []string{"storage"}, nil)
	cacheHits = prometheus.NewDesc("svc_git_cache_hits_total", "Uses of a repository whose cache was up to date.", []string{"storage"}, nil)
	cacheGets = prometheus.NewDesc("svc_git_cache_fetches_total", "Packs that were fetched from an object store.", []string{"storage"}, nil)
	cacheIn   = prometheus.NewDesc("svc_git_cache_fetched_bytes_total", "Bytes that were fetched from an object store.", []string{"storage"}, nil)
	cacheOut  = prometheus.NewDesc("svc_git_cache_evictions_total", "Repositories that were removed from the cache to make room.", []string{"storage"}, nil)
	held      = prometheus.NewDesc("svc_runner_requests_held", "Requests of runners that wait for a job.", nil, nil)
)

// Describe implements prometheus.Collector.
func (parts) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{poolOpen, poolWaits, poolWait, work, cacheSize, cacheN, cacheHits, cacheGets, cacheIn, cacheOut, held, partUp, ready, nodeInfo, nodeAge} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (p parts) Collect(to chan<- prometheus.Metric) {
	for name, st := range p.s.DB.Stats() {
		to <- prometheus.MustNewConstMetric(poolOpen, prometheus.GaugeValue, float64(st.InUse), name, "used")
		to <- prometheus.MustNewConstMetric(poolOpen, prometheus.GaugeValue, float64(st.Idle), name, "idle")
		to <- prometheus.MustNewConstMetric(poolWaits, prometheus.CounterValue, float64(st.WaitCount), name)
		to <- prometheus.MustNewConstMetric(poolWait, prometheus.CounterValue, st.WaitDuration.Seconds(), name)
	}
	for _, b := range p.s.buckets.storages {
		now := b.Stats()
		to <- prometheus.MustNewConstMetric(cacheSize, prometheus.GaugeValue, float64(now.Bytes), b.Name)
		to <- prometheus.MustNewConstMetric(cacheN, prometheus.GaugeValue, float64(now.Repositories), b.Name)
		to <- prometheus.MustNewConstMetric(cacheMost, prometheus.GaugeValue, float64(b.CacheSize), b.Name)
		to <- prometheus.MustNewConstMetric(cacheUsed, prometheus.GaugeValue, float64(now.PinnedBytes), b.Name)
		to <- prometheus.MustNewConstMetric(cacheBusy, prometheus.GaugeValue, float64(now.Pinned), b.Name)
		to <- prometheus.MustNewConstMetric(cacheHits, prometheus.CounterValue, float64(now.Hits), b.Name)
		to <- prometheus.MustNewConstMetric(cacheGets, prometheus.CounterValue, float64(now.Fetches), b.Name)
		to <- prometheus.MustNewConstMetric(cacheIn, prometheus.CounterValue, float64(now.FetchedBytes), b.Name)
		to <- prometheus.MustNewConstMetric(cacheOut, prometheus.CounterValue, float64(now.Evictions), b.Name)
	}
	to <- prometheus.MustNewConstMetric(held, prometheus.GaugeValue, float64(p.s.CI.JobQueue.Held()))
	for name, state := range p.s.dependencies.states() {
		if state != stateUnknown {
			to <- prometheus.MustNewConstMetric(partUp, prometheus.GaugeValue, truth(state == stateOK), name)
		}
	}
	to <- prometheus.MustNewConstMetric(ready, prometheus.GaugeValue, truth(!p.s.stopping.Load()))
	ctx, cancel := context.WithTimeout(context.Background(), checkTimeout)
	defer cancel()
	nodes, err := p.s.Instance.Nodes(ctx, actor.System())
	if err != nil {
		p.s.Log.Error("cannot read the list of nodes", "error", err)
	}
	for _, n := range nodes {
		to <- prometheus.MustNewConstMetric(nodeAge, prometheus.GaugeValue, max(0, p.s.now().Sub(n.SeenAt).Seconds()), n.Name)
		if n.Self {
			to <- prometheus.MustNewConstMetric(nodeInfo, prometheus.GaugeValue, 1, n.Name, n.Version, strconv.FormatInt(n.Schema, 10))
		}
	}
	stats, err := p.s.Queue.Stats(ctx)
	if err != nil {
		p.s.Log.Error("cannot read the queue state", "error", err)
		return
	}
	for _, st := range stats {
		to <- prometheus.MustNewConstMetric(work, prometheus.GaugeValue, float64(st.N), string(st.State), st.Kind)
	}
}

// truth converts a bool to the value of a metric.
func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
