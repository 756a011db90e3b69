package caller

import (
	"bytes"
	"reflect"
	"runtime"
	"strconv"
)

// maxTrace bounds the text of a trace of all goroutines.
const maxTrace = 64 << 20

// Inside reports whether the calling goroutine is inside a Within(id, …). It reads a stack
// trace, which takes microseconds.
//
// Concurrency: any goroutine; never waits. Allocates: yes.
func Inside(id uintptr) bool {
	name := withinName()
	found, others := scan(trace(false), name, id)
	return found || countFrames(name) > others
}

// Stacks returns the traces of the goroutines that are inside id, as runtime.Stack prints them,
// or "" when there are none. When no trace shows the id but some leave out their middle, it
// returns those: one of them may be it. It stops the world while it reads all stacks, so it is
// for reports of something gone wrong.
//
// Concurrency: any goroutine; never waits for one. Allocates: yes.
func Stacks(id uintptr) string {
	var inside, elided [][]byte
	name := withinName()
	for one := range bytes.SplitSeq(trace(true), []byte("\n\n")) {
		if found, _ := scan(one, name, id); found {
			inside = append(inside, one)
		} else if bytes.Contains(one, []byte(" frames elided...\n")) {
			elided = append(elided, one)
		}
	}
	if len(inside) == 0 {
		inside = elided
	}
	return string(bytes.Join(inside, []byte("\n\n")))
}

// withinName returns the name of Within as traces print it. It is asked for instead of written
// down, so that a copy of the module under another path works.
func withinName() string {
	return runtime.FuncForPC(reflect.ValueOf(Within).Pointer()).Name()
}

// trace returns the stack trace of this goroutine, or of all.
func trace(all bool) []byte {
	for size := 8 << 10; ; size *= 2 {
		buf := make([]byte, size)
		if n := runtime.Stack(buf, all); n < size || size >= maxTrace {
			return buf[:n]
		}
	}
}

// scan looks through one goroutine's trace for frames of the function called name. It reports
// whether the first argument of one is id for certain, and how many are something else for certain.
func scan(text []byte, name string, id uintptr) (found bool, others int) {
	frame := []byte(name + "(0x")
	for line := range bytes.Lines(text) {
		args, ok := bytes.CutPrefix(line, frame)
		if !ok {
			continue
		}
		// The argument ends at a comma; before it a question mark says that the runtime is unsure.
		digits, _, _ := bytes.Cut(args, []byte(","))
		value, err := strconv.ParseUint(string(digits), 16, 64)
		switch {
		case err != nil:
		case uintptr(value) == id:
			found = true
		default:
			others++
		}
	}
	return found, others
}

// countFrames returns how many frames of the function called name are on this goroutine's
// stack, however deep it is.
func countFrames(name string) int {
	pcs := make([]uintptr, 256)
	for {
		n := runtime.Callers(1, pcs)
		if n < len(pcs) {
			pcs = pcs[:n]
			break
		}
		pcs = make([]uintptr, 2*len(pcs))
	}
	if len(pcs) == 0 {
		return 0
	}
	count := 0
	for frames := runtime.CallersFrames(pcs); ; {
		frame, more := frames.Next()
		if frame.Function == name {
			count++
		}
		if !more {
			return count
		}
	}
}
