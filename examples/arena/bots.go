package arena

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"time"
)

const (
	// A bot acts after a random time between these two.
	quickest, slowest = 50 * time.Millisecond, 250 * time.Millisecond
	// shortestVisit is the fewest actions before a bot quits and comes back as a new player;
	// the most is twice that.
	shortestVisit = 40
	// patience is the longest a bot waits for an answer, and retry how long it stays away
	// when it was cut off.
	patience, retry = 10 * time.Second, time.Second
)

// bot plays over a real connection, as a person with nc would. All of it belongs to the
// bot's goroutine.
type bot struct {
	name, addr string
	rng        *rand.Rand
	conn       net.Conn
	in         *bufio.Reader
}

// play visits the arena again and again until ctx ends.
func (b *bot) play(ctx context.Context) {
	for b.rest(ctx, 0, slowest) {
		if err := b.visit(ctx); err != nil && !b.rest(ctx, retry, 2*retry) {
			return
		}
	}
}

// visit is one connection, from join to quit. Its error is nil if the bot left by itself.
func (b *bot) visit(ctx context.Context) (err error) {
	if b.conn, err = new(net.Dialer).DialContext(ctx, "tcp", b.addr); err != nil {
		return err
	}
	defer b.conn.Close()
	defer context.AfterFunc(ctx, func() { b.conn.Close() })()
	b.in = bufio.NewReader(b.conn)
	b.conn.SetDeadline(time.Now().Add(patience))
	if err := errors.Join(b.hear(), b.ask("join "+b.name)); err != nil { // the welcome comes first
		return err
	}
	for range shortestVisit + b.rng.IntN(shortestVisit+1) {
		if !b.rest(ctx, quickest, slowest) {
			return ctx.Err()
		}
		if err := b.ask(b.whim()); err != nil {
			return err
		}
	}
	return b.ask("quit")
}

// whim is what the bot does next: mostly it fires.
func (b *bot) whim() string {
	dx, dy := b.rng.Float64()*2-1, b.rng.Float64()*2-1
	switch n := b.rng.IntN(20); {
	case n == 0:
		return "look"
	case n < 6:
		return fmt.Sprintf("move %.2f %.2f", dx*longestStep, dy*longestStep)
	}
	return fmt.Sprintf("fire %.4f %.4f", dx, dy)
}

// ask sends a line and waits for the answer.
func (b *bot) ask(line string) error {
	b.conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(b.conn, line+"\n"); err != nil {
		return err
	}
	return b.hear()
}

// hear reads an answer: a line, and those that it says follow.
func (b *bot) hear() error {
	answer, err := b.in.ReadString('\n')
	follow := 0
	if _, count, ok := strings.Cut(answer, "arrows, "); ok {
		fmt.Sscan(count, &follow)
	}
	for ; follow > 0 && err == nil; follow-- {
		_, err = b.in.ReadString('\n')
	}
	return err
}

// rest waits, and says whether there is reason to go on.
func (b *bot) rest(ctx context.Context, least, most time.Duration) bool {
	t := time.NewTimer(least + time.Duration(b.rng.Int64N(int64(most-least))))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
