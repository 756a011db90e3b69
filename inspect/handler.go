package inspect

import (
	"log/slog"
	"net/http"
	"sync"

	"go.uber.org/atomic"

	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

// Handler is the page, and all that it asks for.
type Handler struct {
	engine  *logic.Engine
	cfg     Config
	guard   guard
	mux     *http.ServeMux
	figures *collector
	views   views
	streams atomic.Int64
	reader  sync.Mutex // held while a published frame is read; leaf lock

	closing   sync.Once
	closed    chan struct{} // closed by Close
	collected chan struct{} // closed when the collecting goroutine has ended
}

// New makes the page of an engine. It starts to collect at once, so that the charts have a past when somebody looks.
//
// Panics: without an engine.
// Concurrency: any goroutine. Allocates: the handler.
func New(e *logic.Engine, c Config) *Handler {
	if e == nil {
		panic("inspect: nil engine")
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	h := &Handler{
		engine:    e,
		cfg:       c,
		guard:     newGuard(c),
		mux:       http.NewServeMux(),
		figures:   newCollector(e, c),
		closed:    make(chan struct{}),
		collected: make(chan struct{}),
	}
	h.views.all = map[string]*keptView{}
	h.route()
	go h.collect()
	return h
}

// route says what there is. GET stands for HEAD, too.
func (h *Handler) route() {
	h.mux.HandleFunc("GET /{$}", page)
	h.mux.HandleFunc("GET /assets/{name}", asset)
	h.mux.HandleFunc("GET /stats.json", h.private(h.stats))
	h.mux.HandleFunc("GET /history.json", h.private(h.history))
	h.mux.HandleFunc("GET /metrics", h.private(h.metrics))
	h.mux.HandleFunc("GET /chunks.json", h.private(h.view(chunksTopic)))
	h.mux.HandleFunc("GET /world.json", h.private(h.view(worldTopic)))
	h.mux.HandleFunc("GET /entity.json", h.private(h.view(entityTopic)))
	h.mux.HandleFunc("GET /events", h.private(h.events))
	if h.cfg.Token != "" {
		h.mux.HandleFunc("POST /actions/{name}", h.act)
	}
}

// ServeHTTP answers a request, or refuses it.
//
// Concurrency: any goroutine; never waits for Logic, but for a moment for the chunk map and an entity. Allocates: yes.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	setReadDeadline(w, r)
	if err := h.guard.check(r); err != nil {
		http.Error(w, err.reason, err.status)
		return
	}
	select {
	case <-h.closed:
		http.Error(w, "the page is closed", http.StatusServiceUnavailable)
		return
	default:
	}
	setWriteDeadline(w)
	h.mux.ServeHTTP(w, r)
}

// private wraps what shows figures: from afar they need the token.
func (h *Handler) private(f http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !isLocal(r) && !h.guard.knows(r) {
			http.Error(w, "from afar everything needs the token, in the header "+tokenHeader, http.StatusUnauthorized)
			return
		}
		f(w, r)
	}
}

// Close ends every stream and the collecting goroutine, and waits for that goroutine. Requests are refused from now on. A
// second call is harmless; the error is always nil.
//
// Concurrency: any goroutine. Allocates: no.
func (h *Handler) Close() error {
	h.closing.Do(func() { close(h.closed) })
	<-h.collected
	return nil
}

// read runs fn on the newest published frame. One at a time: a single pin never keeps a frame from being published.
func (h *Handler) read(fn func(s *registry.Snapshot)) error {
	h.reader.Lock()
	defer h.reader.Unlock()
	return h.engine.Registry().Read(func(s *registry.Snapshot) error {
		fn(s)
		return nil
	})
}

func (h *Handler) stats(w http.ResponseWriter, _ *http.Request) {
	answerJSON(w, h.figures.latest().message)
}

func (h *Handler) history(w http.ResponseWriter, _ *http.Request) {
	answerJSON(w, h.figures.history())
}

func (h *Handler) metrics(w http.ResponseWriter, _ *http.Request) {
	answer(w, "text/plain; version=0.0.4; charset=utf-8", h.figures.latest().metrics())
}
