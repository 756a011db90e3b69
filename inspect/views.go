package inspect

import (
	"errors"
	"net/http"
	"net/url"
	"sync"
	"time"

	"go.uber.org/atomic"

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
	event     string // what streams call it
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
	data *message
	at   time.Time
}

// views are those that somebody looked at lately. Each asks Logic one question at a time, and seldom; but who looks at one
// after the other makes them without end, so all of them together have a bound, too.
type views struct {
	open atomic.Int64 // questions that Logic has not answered

	mu    sync.Mutex // guards what follows, and keptView.asked; no other lock is taken under it
	all   map[string]*keptView
	began time.Time // of the present stretch of logicEvery
	asked int       // questions in it
}

// ask says whether Logic may be asked one more question, which is open then.
func (v *views) ask(now time.Time) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if now.Sub(v.began) >= logicEvery {
		v.began, v.asked = now, 0
	}
	if v.asked >= mostViews || v.open.Load() >= mostViews {
		return false
	}
	v.asked++
	v.open.Inc()
	return true
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

// get gives the newest message, nil if there are none, and asks for newer ones if it is time. answer is closed when Logic has
// said something that get does not know yet; nil if it was not asked.
func (k *keptView) get() (data *message, answer <-chan struct{}) {
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
		k.direct = kept{newMessage(k.event, k.published(), k.direct.data), now}
	}
	return k.direct.data, answer
}

// askLocked takes what Logic has said, and asks it again if it is time: one question at a time, which waits if Logic hangs.
func (k *keptView) askLocked(now time.Time) <-chan struct{} {
	if k.ticket != nil {
		select {
		case <-k.ticket.Done():
			if k.ticket.Err() == nil {
				k.logic = kept{newMessage(k.event, *k.said, k.logic.data), now}
			}
			k.ticket = nil
		default:
			return k.ticket.Done()
		}
	}
	if now.Before(k.due) || !k.h.views.ask(now) {
		return nil
	}
	said, open := new(any), &k.h.views.open
	ticket, err := k.h.engine.Enqueue(func(w *registry.Window) error {
		defer open.Dec()
		*said = k.onLogic(w)
		return nil
	})
	if err != nil {
		open.Dec()
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
			data = newMessage(v.event, waiting{h.figures.latest().figures.State}, nil)
		}
		answerJSON(w, data)
	}
}

// waiting is the answer while Logic has not said anything.
type waiting struct{ Waiting string }

var errNoNumber = errors.New("inspect: not a number from 0 on")
