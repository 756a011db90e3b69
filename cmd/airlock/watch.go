package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/airlock-ecs/airlock/pool"
)

const (
	watchPath    = "/stats.json"
	watchTimeout = 5 * time.Second
	mostWatched  = 64 << 20 // bytes of an answer
)

// watcher follows the pools of a server that runs.
type watcher struct {
	url      string
	every    time.Duration
	json     bool
	out      io.Writer
	terminal bool // the table is drawn over the one before

	client http.Client
	drawn  int    // lines of that
	last   []byte // what was shown last
}

// watchURL is where a server has its figures: whoever runs one knows its address, and not more.
func watchURL(given string) (string, error) {
	if !strings.Contains(given, "://") {
		given = "http://" + given
	}
	u, err := url.Parse(given)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", usagef("--watch needs the URL of a server, such as http://127.0.0.1:7701, not %q", given)
	}
	if !strings.HasSuffix(u.Path, watchPath) {
		u.Path = strings.TrimSuffix(u.Path, "/") + watchPath
	}
	return u.String(), nil
}

// run shows the table until ctx ends, which is how watching ends, or the server does not answer.
func (w *watcher) run(ctx context.Context) error {
	defer w.client.CloseIdleConnections()
	tick := time.NewTicker(w.every)
	defer tick.Stop()
	for seen := false; ; seen = true {
		rows, err := w.ask(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && seen:
			return fmt.Errorf("the server is gone: %w", err)
		case err != nil:
			return err
		}
		if err := w.show(rows); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// ask gets the pools from the server.
func (w *watcher) ask(ctx context.Context) ([]poolRow, error) {
	ctx, cancel := context.WithTimeout(ctx, watchTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url, nil)
	if err != nil {
		return nil, err
	}
	answer, err := w.client.Do(request)
	if err != nil {
		var detail *url.Error
		if errors.As(err, &detail) {
			err = detail.Err
		}
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("no answer in %v", watchTimeout)
		}
		return nil, fmt.Errorf("%s cannot be read: %w", w.url, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", w.url, answer.Status)
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, mostWatched))
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", w.url, err)
	}
	rows, err := readRows(body)
	if err != nil {
		return nil, fmt.Errorf("%s has no pools: %w", w.url, err)
	}
	return rows, nil
}

// poolRow is a pool as a program reads it.
type poolRow struct {
	Prefab  string `json:"prefab"`
	Cap     int    `json:"cap"`
	InUse   int    `json:"in_use"`
	Free    int    `json:"free"`
	Peak    int    `json:"peak"`
	Grow    string `json:"grow"` // as pool files have it
	Warm    bool   `json:"warm"`
	Refused int    `json:"refused"`
}

func rowOf(prefab string, s pool.Stats) poolRow {
	return poolRow{prefab, s.Cap, s.InUse, s.Free, s.Peak, s.Grow.String(), s.Warm, s.Refused}
}

// tableOf are rows as pool.FormatTable wants them.
func tableOf(rows []poolRow) iter.Seq2[string, pool.Stats] {
	return func(yield func(string, pool.Stats) bool) {
		for _, r := range rows {
			grow, _ := growOf(r.Grow) // readRows has seen it
			s := pool.Stats{Cap: r.Cap, InUse: r.InUse, Free: r.Free, Peak: r.Peak, Grow: grow, Warm: r.Warm, Refused: r.Refused}
			if !yield(r.Prefab, s) {
				return
			}
		}
	}
}

// growOf reads a policy as a pool file or a table has it.
func growOf(text string) (pool.Grow, error) {
	switch text {
	case "Fixed", "fix":
		return pool.Fixed(), nil
	case "Double", "×2", "":
		return pool.Double(), nil
	}
	step := strings.TrimPrefix(text, "+")
	if inner, ok := strings.CutPrefix(text, "Additive("); ok {
		step = strings.TrimSuffix(inner, ")")
	}
	if n, err := strconv.Atoi(step); err == nil && n > 0 {
		return pool.Additive(n), nil
	}
	return pool.Grow{}, fmt.Errorf("a pool grows by %q", text)
}

// readRows reads the field pools of an object. Capitals and underscores of keys make no difference, unknown keys are left out, and
// absent ones are zero, so that another version of the server can be followed.
func readRows(body []byte) ([]poolRow, error) {
	var figures struct{ Pools *[]map[string]json.RawMessage }
	switch err := json.Unmarshal(body, &figures); {
	case err != nil:
		return nil, fmt.Errorf("it is not the JSON that was expected: %w", err)
	case figures.Pools == nil:
		return nil, errors.New("there is no field pools")
	}
	rows := make([]poolRow, 0, len(*figures.Pools))
	for i, fields := range *figures.Pools {
		var r poolRow
		known := map[string]any{
			"prefab": &r.Prefab, "name": &r.Prefab, "cap": &r.Cap, "inuse": &r.InUse, "free": &r.Free, "peak": &r.Peak,
			"grow": &r.Grow, "warm": &r.Warm, "refused": &r.Refused,
		}
		for key, value := range fields {
			target, ok := known[strings.ToLower(strings.ReplaceAll(key, "_", ""))]
			if !ok {
				continue
			}
			if err := json.Unmarshal(value, target); err != nil {
				return nil, fmt.Errorf("%s of pool %d: %w", key, i+1, err)
			}
		}
		if _, err := growOf(r.Grow); err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// show prints the pools: over what was there on a terminal, and else if anything has changed.
func (w *watcher) show(rows []poolRow) error {
	var text bytes.Buffer
	if w.json {
		line, err := json.Marshal(map[string][]poolRow{"pools": rows})
		if err != nil {
			return err
		}
		for _, r := range string(line) {
			if r >= 0x7f && r <= 0x9f { // control characters that JSON may have as they are, and a terminal obeys
				fmt.Fprintf(&text, `\u%04x`, r)
			} else {
				text.WriteRune(r)
			}
		}
		text.WriteByte('\n')
	} else if err := pool.FormatTable(&text, tableOf(rows)); err != nil {
		return err
	}
	if bytes.Equal(text.Bytes(), w.last) {
		return nil
	}
	first := w.last == nil
	w.last = text.Bytes()
	var out bytes.Buffer
	switch {
	case w.json || first:
	case w.terminal:
		fmt.Fprintf(&out, "\x1b[%dA\x1b[J", w.drawn) // up to the first line, and nothing below
	default:
		out.WriteByte('\n')
	}
	w.drawn = bytes.Count(w.last, []byte("\n"))
	out.Write(w.last)
	_, err := w.out.Write(out.Bytes())
	return err
}
