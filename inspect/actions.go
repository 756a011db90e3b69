package inspect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/airlock-ecs/airlock/defrag"
	"github.com/airlock-ecs/airlock/handles"
	"github.com/airlock-ecs/airlock/logic"
	"github.com/airlock-ecs/airlock/pool"
	"github.com/airlock-ecs/airlock/registry"
)

const (
	actionAnswer = time.Second     // how long an action waits for Logic
	defragFor    = 3 * time.Second // how long one request goes on compacting
	defragMoves  = 256             // in each frame
	cause        = "inspect"       // in obituaries and the journal
)

// action does something, and says what has come of it.
type action func(h *Handler, ctx context.Context, body []byte) (outcome string, err error)

// errWaits reports what Logic has accepted and not come to yet.
var errWaits = errors.New("accepted: Logic has not come to it yet, and does it in its next window")

// errBody reports a request that makes no sense.
var errBody = errors.New("bad request")

func actionNamed(name string) action {
	return map[string]action{
		"pause": pause, "resume": resume, "step": stepOne, "defrag": compact, "confirm": confirm, "declare": declare, "destroy": destroy,
	}[name]
}

// act answers a request for an action. There is none without a token: then there is no such address.
func (h *Handler) act(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	do := actionNamed(name)
	log := h.cfg.Logger.With("action", name, "from", r.RemoteAddr)
	if !h.guard.knows(r) {
		log.Warn("airlock: inspect: refused, without the token")
		http.Error(w, "an action needs the token, in the header "+tokenHeader, http.StatusUnauthorized)
		return
	}
	if do == nil {
		http.Error(w, "there is no such action", http.StatusNotFound)
		return
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		http.Error(w, "the body has to be application/json", http.StatusUnsupportedMediaType)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostBodyBytes))
	if err != nil {
		http.Error(w, "the body is too large, or was not sent", http.StatusRequestEntityTooLarge)
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // that the client is silent now is no end of it
	outcome, err := do(h, r.Context(), body)
	setWriteDeadline(w) // both took their time
	status := http.StatusOK
	switch {
	case err == nil:
	case errors.Is(err, errWaits):
		status, outcome = http.StatusAccepted, err.Error()
	case errors.Is(err, errBody):
		status, outcome = http.StatusBadRequest, err.Error()
	default:
		status, outcome = http.StatusConflict, err.Error()
	}
	log.Info("airlock: inspect: an action", slog.String("body", string(body)), slog.Int("status", status), slog.String("outcome", outcome))
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, outcome+"\n")
}

// decode reads a body into a struct that has every field that it may have.
func decode(body []byte, into any) error {
	d := json.NewDecoder(strings.NewReader(string(body)))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if _, next := d.Token(); err == nil && next != io.EOF {
		err = errors.New("something follows the object")
	}
	if err != nil {
		return fmt.Errorf("%w: %v", errBody, err)
	}
	return nil
}

// onLogic runs fn in a window and waits for it, for a while: what was accepted runs, also later.
func (h *Handler) onLogic(ctx context.Context, fn func(w *registry.Window) error) error {
	ticket, err := h.engine.Enqueue(func(w *registry.Window) error {
		w.Named(cause)
		return fn(w)
	})
	if err != nil {
		return err
	}
	limit := time.NewTimer(actionAnswer)
	defer limit.Stop()
	select {
	case <-ticket.Done():
		return ticket.Err()
	case <-limit.C:
	case <-ctx.Done():
	}
	return errWaits
}

// running says whether Run runs, which alone can be paused.
func (h *Handler) running() error {
	if d := h.engine.Doing(); d.Mode != logic.Running {
		return fmt.Errorf("the engine is %s: only one that Run runs can be paused", d.Mode)
	}
	return nil
}

func pause(h *Handler, _ context.Context, body []byte) (string, error) {
	if err := errors.Join(decode(body, &struct{}{}), h.running()); err != nil {
		return "", err
	}
	h.engine.Pause()
	return "paused after the frame in progress", nil
}

func resume(h *Handler, _ context.Context, body []byte) (string, error) {
	if err := decode(body, &struct{}{}); err != nil {
		return "", err
	}
	h.engine.Resume()
	return "resumed", nil
}

// stepOne pauses, if need be, and lets one frame run.
func stepOne(h *Handler, _ context.Context, body []byte) (string, error) {
	if err := errors.Join(decode(body, &struct{}{}), h.running()); err != nil {
		return "", err
	}
	h.engine.Pause()
	h.engine.Advance(1)
	return "one frame more", nil
}

// compact compacts a slice in each frame, so that the chunk map shows it, until nothing is left or the time is over.
func compact(h *Handler, ctx context.Context, body []byte) (string, error) {
	if err := decode(body, &struct{}{}); err != nil {
		return "", err
	}
	c, err := defrag.New(h.engine.Registry(), defrag.Config{Moves: defragMoves})
	if err != nil {
		return "", err
	}
	var moved, chunks int
	var left int64 = 1
	for until := time.Now().Add(defragFor); left > 0 && time.Now().Before(until); {
		done := make(chan defrag.Report, 1) // not shared with a callback that is answered too late
		err := h.onLogic(ctx, func(w *registry.Window) error {
			rep, err := c.Run(w)
			done <- rep
			return err
		})
		if err != nil {
			return "", err
		}
		rep := <-done
		moved, chunks, left = moved+rep.Moved, chunks+rep.ChunksFreed, int64(rep.Left)
		if rep.Moved == 0 {
			break
		}
	}
	return fmt.Sprintf("%d entities moved, %d chunks freed, %d left to move", moved, chunks, left), nil
}

func confirm(h *Handler, ctx context.Context, body []byte) (string, error) {
	if err := decode(body, &struct{}{}); err != nil {
		return "", err
	}
	counts := make(chan [2]int, 1)
	err := h.onLogic(ctx, func(w *registry.Window) error {
		counts <- [2]int{w.ConfirmLocalRecycles(), w.ConfirmNetRecycles()}
		return nil
	})
	if err != nil {
		return "", err
	}
	n := <-counts
	return fmt.Sprintf("%d local and %d net indices are free", n[0], n[1]), nil
}

// declarer is a source of pools that takes declarations: a *pool.Prefabs.
type declarer interface {
	Declare(w *registry.Window, id string, capacity int, g pool.Grow, prewarm bool) error
}

// declarerOf is the first of the sources that takes declarations, nil if none does.
func declarerOf(sources []pool.Source) declarer {
	for _, s := range sources {
		if d, ok := s.(declarer); ok {
			return d
		}
	}
	return nil
}

func declare(h *Handler, ctx context.Context, body []byte) (string, error) {
	var ask struct {
		Prefab   string
		Capacity int
		Grow     string
		Prewarm  bool
	}
	if err := decode(body, &ask); err != nil {
		return "", err
	}
	grow, err := parseGrow(ask.Grow)
	if err != nil {
		return "", err
	}
	d := declarerOf(h.cfg.Pools)
	if d == nil {
		return "", errors.New("no source of pools takes declarations")
	}
	err = h.onLogic(ctx, func(w *registry.Window) error { return d.Declare(w, ask.Prefab, ask.Capacity, grow, ask.Prewarm) })
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%q is declared: capacity %d, %v", ask.Prefab, ask.Capacity, grow), nil
}

// parseGrow reads a policy as Grow.String writes it.
func parseGrow(text string) (pool.Grow, error) {
	inner, ok := strings.CutPrefix(text, "Additive(")
	n, err := strconv.Atoi(strings.TrimSuffix(inner, ")"))
	for _, g := range []pool.Grow{pool.Fixed(), pool.Double(), pool.Additive(n)} {
		if g.String() == text && (g != pool.Additive(n) || ok && err == nil && n > 0) {
			return g, nil
		}
	}
	return pool.Grow{}, fmt.Errorf("%w: Grow is Fixed, Double or Additive(n)", errBody)
}

func destroy(h *Handler, ctx context.Context, body []byte) (string, error) {
	var ask struct{ Handle handles.Local }
	if err := decode(body, &ask); err != nil {
		return "", err
	}
	if err := h.onLogic(ctx, func(w *registry.Window) error { return w.Destroy(ask.Handle) }); err != nil {
		return "", err
	}
	return ask.Handle.String() + " is destroyed", nil
}
