package inspect

import (
	"errors"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/registry"
)

const (
	viewEvery   = 80 * time.Millisecond  // of what is published
	logicEvery  = 250 * time.Millisecond // of what Logic is asked
	logicAnswer = 250 * time.Millisecond // how long a single request waits for Logic
	logicFresh  = time.Second            // what Logic has said is shown so long rather than what is published
)

// topic finds the view that a request asks for.
type topic func(h *Handler, q url.Values) (*keptView, error)

// keptView is something that somebody looks at: all who do get the same bytes. It is taken from what is published, or Logic is
// asked in a window, or both: then what is published is shown while Logic does not answer.
type keptView struct {
	h         *Handler
	published func() any
	onLogic   func(w *registry.Window) any // runs in a window, and changes nothing

	mu     sync.Mutex // guards what follows; leaf lock but for the calls of published
	asked  time.Time  // when somebody looked last; guarded by views.mu
	ticket *logic.Ticket
	said   *any // Logic writes it before the ticket is done
	due    time.Time
	logic  kept
	direct kept
}

type kept struct {
	data []byte
	at   time.Time
}

// views are those that somebody looked at lately.
type views struct {
	mu  sync.Mutex // guards all, and keptView.asked; no other lock is taken under it
	all map[string]*keptView
}

// find gives the view of a key, made new if nobody looks at it yet. Too many: the one that nobody has looked at for longest goes.
func (v *views) find(key string, made *keptView) *keptView {
	v.mu.Lock()
	defer v.mu.Unlock()
	found := v.all[key]
	if found == nil {
		if len(v.all) >= mostViews {
			oldest := ""
			for k, other := range v.all {
				if oldest == "" || other.asked.Before(v.all[oldest].asked) {
					oldest = k
				}
			}
			delete(v.all, oldest)
		}
		found = made
		v.all[key] = found
	}
	found.asked = time.Now()
	return found
}

// touch notes that somebody still looks at a view, and keeps it.
func (v *views) touch(k *keptView) {
	v.mu.Lock()
	k.asked = time.Now()
	v.mu.Unlock()
}

// get gives the newest bytes, nil if there are none, and asks for newer ones if it is time. answer is closed when Logic has
// said something that get does not know yet; nil if it was not asked.
func (k *keptView) get() (data []byte, answer <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	if k.onLogic != nil {
		answer = k.askLocked(now)
		if now.Sub(k.logic.at) < logicFresh || k.published == nil {
			return k.logic.data, answer
		}
	}
	if k.published != nil && now.Sub(k.direct.at) >= viewEvery {
		k.direct = kept{encode(k.published()), now}
	}
	return k.direct.data, answer
}

// askLocked takes what Logic has said, and asks it again if it is time: one question at a time, which waits if Logic hangs.
func (k *keptView) askLocked(now time.Time) <-chan struct{} {
	if k.ticket != nil {
		select {
		case <-k.ticket.Done():
			if k.ticket.Err() == nil {
				k.logic = kept{encode(*k.said), now}
			}
			k.ticket = nil
		default:
			return k.ticket.Done()
		}
	}
	if now.Before(k.due) {
		return nil
	}
	said := new(any)
	ticket, err := k.h.engine.Enqueue(func(w *registry.Window) error {
		*said = k.onLogic(w)
		return nil
	})
	if err != nil {
		return nil // stopped, or so busy that this is not the time
	}
	k.ticket, k.said, k.due = ticket, said, now.Add(logicEvery)
	return ticket.Done()
}

// view answers with a view, once.
func (h *Handler) view(t topic) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, err := t(h, r.URL.Query())
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		data, answer := v.get()
		if answer != nil {
			limit := time.NewTimer(logicAnswer)
			defer limit.Stop()
			select {
			case <-answer:
				data, _ = v.get()
			case <-limit.C:
			case <-r.Context().Done():
				return
			}
		}
		if data == nil {
			data = encode(waiting{h.figures.latest().figures.State})
		}
		writeJSON(w, data)
	}
}

// waiting is the answer while Logic has not said anything.
type waiting struct{ Waiting string }

var errNoNumber = errors.New("inspect: not a number from 0 on")
