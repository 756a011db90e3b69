package sim_test

import (
	"errors"
	"fmt"

	"github.com/airlock-ecs/airlock/internal/sim"
)

// mistake is what is wrong with a toy.
type mistake string

const (
	none              mistake = "none"
	lostWakeUp        mistake = "a lost wake-up"
	doubleReply       mistake = "a double reply"
	cancelledAndRan   mistake = "a caller that was cancelled, and ran"
	neverAtAll        mistake = "a wake-up that is never sent"
	answerAfterReturn mistake = "an answer after the return"
)

// toy is a handshake of one caller, somebody who grants, somebody who stops, and a context that ends. Each
// line between two places is atomic, as a load or a compare-and-swap is in the engine.
type toy struct {
	*sim.Sim
	mistake mistake

	state     string // waiting, parked; granted, stopped, cancelled
	woken     bool
	cancelled bool
	replies   int
	ran       int
	outcome   string
}

func (y *toy) at(place string) { y.At(sim.Name(place)) }

// settle is what grants and stops: one of the two.
func (y *toy) settle(final string) {
	was := y.state
	if y.mistake == doubleReply { // looks, and then writes
		y.at("settling")
	}
	if was != "waiting" && was != "parked" {
		return
	}
	y.state = final
	y.replies++
	if final == "granted" {
		y.ran++
	}
	if was == "parked" && y.mistake != neverAtAll {
		y.at("waking")
		y.woken = true
	}
}

func (y *toy) call() {
	y.state = "waiting"
	y.at("queued")
	if y.state == "waiting" {
		if y.mistake == lostWakeUp { // who settles in between sees nobody asleep
			y.at("parking")
			if y.state != "waiting" {
				y.Wait(sim.Name("asleep"), func() bool { return y.woken })
				y.outcome = y.state
				return
			}
		}
		y.state = "parked"
	}
	for y.state == "parked" {
		switch y.Wait(sim.Name("parked"), func() bool { return y.woken }, func() bool { return y.cancelled }) {
		case 0:
			y.woken = false
		case 1:
			if y.mistake == cancelledAndRan {
				y.at("leaving")
				y.outcome = "cancelled"
				y.state = "cancelled"
				return
			}
			y.at("leaving")
			if y.state == "parked" {
				y.state, y.outcome = "cancelled", "cancelled"
				return
			}
		}
	}
	y.outcome = y.state
	if y.mistake == answerAfterReturn {
		y.at("returning")
		y.replies++
	}
}

// play runs a toy to its end, and says what is wrong.
func play(m mistake, s sim.Strategy) (*toy, error) {
	y := &toy{Sim: sim.New(s, 1000), mistake: m, state: "idle"}
	y.Go("caller", y.call)
	y.Go("logic", func() {
		y.Wait(sim.Name("collecting"), func() bool { return y.state != "idle" })
		y.settle("granted")
	})
	y.Go("stop", func() {
		y.Wait(sim.Name("stopping"), func() bool { return y.state != "idle" })
		y.settle("stopped")
	})
	if m != neverAtAll { // the end of the context would wake the caller
		y.Go("cancel", func() { y.cancelled = true })
	}
	if err := y.Run(); err != nil {
		return y, err
	}
	replies, ran := 1, 0
	switch y.outcome {
	case "cancelled":
		replies = 0
	case "granted":
		ran = 1
	}
	if y.replies != replies || y.ran != ran {
		return y, fmt.Errorf("%w: %s, with %d replies and %d runs", errToy, y.outcome, y.replies, y.ran)
	}
	return y, nil
}

var errToy = errors.New("not one outcome")
