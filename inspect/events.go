package inspect

import (
	"net/http"
	"time"
)

const (
	eventEvery = 100 * time.Millisecond
	pulseEvery = 10 * time.Second // a stream that has nothing to say says that it is there
	pieceBytes = 32 << 10         // of an event that a client has to take within writeWithin
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
	view *keptView
	sent *message
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
		parameter string
		topic     topic
	}{{"archetype", chunksTopic}, {"component", worldTopic}, {"handle", entityTopic}} {
		if !q.Has(ask.parameter) {
			continue
		}
		v, err := ask.topic(h, q)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.watched = append(s.watched, &watched{view: v})
	}
	keepLittle(r)
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
		s.write(now.message.event)
	}
	if points, last := h.figures.pointsFrom(s.point); points != nil {
		s.point = last
		s.write(points.event)
	}
	for _, k := range s.watched {
		h.views.touch(k.view)
		if data, _ := k.view.get(); data != nil && data != k.sent {
			k.sent = data
			s.write(data.event)
		}
	}
	if time.Since(s.spoke) > pulseEvery {
		s.write([]byte(":\n\n"))
	}
}

// write waits for the client, piece by piece, for no piece longer than writeWithin.
func (s *stream) write(data []byte) {
	s.spoke = time.Now()
	for len(data) > 0 && !s.failed {
		piece := data[:min(len(data), pieceBytes)]
		data = data[len(piece):]
		setWriteDeadline(s.w)
		_, err := s.w.Write(piece)
		if err == nil && len(data) == 0 {
			err = http.NewResponseController(s.w).Flush()
		}
		s.failed = err != nil
	}
}
