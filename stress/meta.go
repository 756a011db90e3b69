package stress

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// Script is operations as data: played under different configurations of registry and engine, it gives the
// same history. Entities are numbered by the script, for handles are none of its business.
//
// As text it is one operation a line, a verb and its numbers, with comments from # to the end of the line:
//
//	spawn 1 50       # entity 1, with value 50
//	parent 2 1       # entity 2 below entity 1
//	step
type Script []Act

// Act is one operation of a script.
type Act struct {
	Verb   Verb
	Entity int // whom it is about
	Arg    int // a value, a number of entities, or another entity
}

// Verb is a kind of operation.
type Verb uint8

// The verbs. Those up to VerbFail are operations of the next window, of one producer and in its order;
// VerbKill happens at once, and the Part ones in a part of a parallel loop of the next frame.
const (
	VerbSpawn     Verb = iota // Entity, with the value Arg
	VerbBatch                 // Arg entities, from Entity on
	VerbPrefab                // Entity, from a pool
	VerbDestroy               // Entity
	VerbSet                   // Entity's value to Arg
	VerbAdd                   // a component with the value Arg to Entity, which moves
	VerbRemove                // it from Entity, which moves back
	VerbParent                // Entity below Arg
	VerbActive                // Entity into the world, if Arg is odd, or out of it
	VerbNet                   // a net handle for Entity
	VerbFail                  // Entity is changed, and everything taken back: by an error, or if Arg is odd by a panic
	VerbKill                  // Entity, from outside
	VerbPartSpawn             // Entity, with the value Arg, in the next window
	VerbPartKill              // Entity
	VerbStep                  // a frame

	verbs int = iota
)

var verbNames = [verbs]string{
	"spawn", "batch", "prefab", "destroy", "set", "add", "remove", "parent", "active", "net", "fail", "kill",
	"part-spawn", "part-kill", "step",
}

// String is the verb as scripts write it.
func (v Verb) String() string {
	if int(v) < verbs {
		return verbNames[v]
	}
	return fmt.Sprintf("Verb(%d)", uint8(v))
}

// numbers is how many numbers follow the verb.
func (v Verb) numbers() int {
	switch v {
	case VerbStep:
		return 0
	case VerbPrefab, VerbDestroy, VerbRemove, VerbNet, VerbKill, VerbPartKill:
		return 1
	}
	return 2
}

// String is the operation as a line of a script.
func (a Act) String() string {
	switch a.Verb.numbers() {
	case 0:
		return a.Verb.String()
	case 1:
		return fmt.Sprintf("%v %d", a.Verb, a.Entity)
	}
	return fmt.Sprintf("%v %d %d", a.Verb, a.Entity, a.Arg)
}

const (
	scriptEntities = 1 << 20 // numbers are below
	scriptBatch    = 1 << 10 // a batch is no larger
)

// Format is the script as text, which ParseScript reads.
//
// Concurrency: any goroutine; never waits. Allocates: the text.
func (s Script) Format() []byte {
	var b bytes.Buffer
	for _, a := range s {
		b.WriteString(a.String())
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// ParseScript reads a script.
//
// Errors: what is wrong, and in which line.
// Concurrency: any goroutine; never waits. Allocates: the script.
func ParseScript(text []byte) (Script, error) {
	var s Script
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		a, err := parseAct(words)
		if err != nil {
			return nil, fmt.Errorf("stress: script line %d: %w", number, err)
		}
		s = append(s, a)
	}
	return s, nil
}

func parseAct(words []string) (a Act, err error) {
	for int(a.Verb) < verbs && verbNames[a.Verb] != words[0] {
		a.Verb++
	}
	if int(a.Verb) == verbs {
		return a, fmt.Errorf("there is no operation %q", words[0])
	}
	if n := a.Verb.numbers(); len(words) != 1+n {
		return a, fmt.Errorf("%v takes %d numbers, not %d", a.Verb, n, len(words)-1)
	}
	for i, into := range []*int{&a.Entity, &a.Arg}[:len(words)-1] {
		if *into, err = strconv.Atoi(words[1+i]); err != nil || *into < 0 || *into >= scriptEntities {
			return a, fmt.Errorf("%q is no number from 0 to %d", words[1+i], scriptEntities-1)
		}
	}
	if a.Verb == VerbBatch && a.Arg > scriptBatch {
		return a, fmt.Errorf("a batch of %d is above %d", a.Arg, scriptBatch)
	}
	return a, nil
}

// RandomScript draws a script of some frames. The same seed draws the same one.
//
// Concurrency: any goroutine; never waits. Allocates: the script.
func RandomScript(seed uint64, frames int) Script {
	rng := rand.New(rand.NewPCG(seed, 0x5c21))
	var s Script
	born := 0
	old := func() int { return max(0, born-1-rng.IntN(64)) } // now and then one that was never born
	for range frames {
		for range rng.IntN(12) {
			a := Act{Verb: Verb(rng.IntN(int(VerbStep))), Entity: old(), Arg: rng.IntN(1000)}
			switch a.Verb {
			case VerbSpawn, VerbPrefab, VerbPartSpawn:
				a.Entity = born
				born++
			case VerbBatch:
				a.Entity, a.Arg = born, 1+rng.IntN(40)
				born += a.Arg
			case VerbParent:
				a.Arg = old()
			}
			if a.Verb.numbers() < 2 {
				a.Arg = 0
			}
			s = append(s, a)
		}
		s = append(s, Act{Verb: VerbStep})
	}
	return s
}

// Shorten leaves out operations as long as the rest still fails.
//
// Concurrency: as fails. Allocates: scripts.
func (s Script) Shorten(fails func(Script) bool) Script {
	for size := len(s) / 2; size > 0; size /= 2 {
		for from := 0; from+size <= len(s); {
			shorter := append(append(Script{}, s[:from]...), s[from+size:]...)
			if fails(shorter) {
				s = shorter
			} else {
				from += size
			}
		}
	}
	return s
}
