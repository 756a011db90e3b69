package inspect

import (
	"bytes"
	"net/http"
	"time"
)

const (
	eventEvery = 100 * time.Millisecond
	pulseEvery = 10 * time.Second // a stream that has nothing to say says that it is there
)

// stream is what one client has got so far.
type stream struct {
	w       http.ResponseWriter
	last    *reading
	point   uint64 // number of the last point
	watched []*watched
	spoke   time.Time
	failed  bool
}

// watched is a view that a client looks at, and what it was sent of it.
type watched struct {
	event string
	view  *keptView
	sent  []byte
}

// events is the stream of what changes: "stats" as /stats.json, "points" as /history.json but for what was sent before, and
// "chunks", "world" and "entity" for what the address asks. A client gets the newest of each, as often as it takes them; what it was
// too slow for it never gets. A stream ends with the engine, after the last figures.
func (h *Handler) events(w http.ResponseWriter, r *http.Request) {
	if h.streams.Inc() > mostStreams {
		h.streams.Dec()
		w.Header().Set("Retry-After", "5")
		http.Error(w, "too many look on already", http.StatusServiceUnavailable)
		return
	}
	defer h.streams.Dec()
	s := &stream{w: w}
	q := r.URL.Query()
	for _, ask := range []struct {
		event, parameter string
		topic            topic
	}{{"chunks", "archetype", chunksTopic}, {"world", "component", worldTopic}, {"entity", "handle", entityTopic}} {
		if !q.Has(ask.parameter) {
			continue
		}
		v, err := ask.topic(h, q)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.watched = append(s.watched, &watched{event: ask.event, view: v})
	}
	w.Header().Set("Content-Type", "text/event-stream")
	tick := time.NewTicker(eventEvery)
	defer tick.Stop()
	for ended := false; ; {
		if h.tell(s); s.failed || ended {
			return
		}
		select {
		case <-tick.C:
		case <-h.engine.Done():
			ended = true // once more, with the last figures
		case <-h.closed:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// tell sends what is new.
func (h *Handler) tell(s *stream) {
	if now := h.figures.latest(); now != s.last {
		s.last = now
		s.send("stats", now.json)
	}
	if points := h.figures.pointsFrom(s.point); len(points) > 0 {
		s.point = points[len(points)-1].Number
		s.send("points", encode(points))
	}
	for _, k := range s.watched {
		h.views.touch(k.view)
		if data, _ := k.view.get(); len(data) > 0 && !same(data, k.sent) {
			k.sent = data
			s.send(k.event, data)
		}
	}
	if time.Since(s.spoke) > pulseEvery {
		s.write([]byte(":\n\n"))
	}
}

// same says whether two slices are one.
func same(a, b []byte) bool { return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0] }

func (s *stream) send(event string, data []byte) {
	s.write(bytes.Join([][]byte{[]byte("event: " + event + "\ndata: "), data, []byte("\n\n")}, nil))
}

// write waits for the client, but not for longer than writeWithin.
func (s *stream) write(data []byte) {
	if s.failed {
		return
	}
	s.spoke = time.Now()
	setWriteDeadline(s.w)
	_, err := s.w.Write(data)
	if err == nil {
		err = http.NewResponseController(s.w).Flush()
	}
	s.failed = err != nil
}
