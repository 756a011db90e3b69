package caller

import (
	"bytes"
	"reflect"
	"runtime"
	"strconv"
)

// maxTrace bounds the text of a trace of all goroutines.
const maxTrace = 64 << 20

// Inside reports whether the calling goroutine is inside a Within(id, …). It reads the stack, and
// a trace of it when there is a Within at all, which takes microseconds.
//
// Concurrency: any goroutine; never waits. Allocates: inside a Within, or on a very deep stack.
func Inside(id uintptr) bool {
	frames := countFrames()
	if frames == 0 { // as of most who ask; the text of a trace is kilobytes
		return false
	}
	found, others := scan(trace(false), withinName(), id)
	return found || frames > others
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

// withinBytes is more than the code of Within takes.
const withinBytes = 4 << 10

// countFrames returns how many frames of Within are on this goroutine's stack, however deep it is.
//
// Within is a function of its own and calls nothing that is inlined, so each of its frames is one
// address behind its beginning. runtime.CallersFrames, which could tell inlined ones apart, puts
// the addresses and itself on the heap.
func countFrames() int {
	var some [256]uintptr
	pcs := some[:]
	n := runtime.Callers(1, pcs)
	for n == len(pcs) {
		pcs = make([]uintptr, 2*len(pcs))
		n = runtime.Callers(1, pcs)
	}
	entry, count := reflect.ValueOf(Within).Pointer(), 0
	for _, pc := range pcs[:n] {
		// Where a call returns to, which may be behind the function's end: one byte before is in it.
		if pc > entry && pc-entry < withinBytes && runtime.FuncForPC(pc-1).Entry() == entry {
			count++
		}
	}
	return count
}
