package pool

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
)

// objectLife says where a guard was made and where it was released; all copies of the guard share it. In
// a release build it has no size and its methods no code: like check.Guard it is an array, and a
// loop over an empty one compiles to nothing.
type objectLife [objectLives]*objectTrace

// objectTrace is written by the calls that begin and end a life, and read by whoever reports it.
type objectTrace struct {
	taken    []uintptr
	released atomic.Pointer[[]uintptr]
}

// begin notes who takes.
func (l *objectLife) begin() {
	for i := range l {
		l[i] = &objectTrace{taken: objectCallers()}
	}
}

// end notes who gives back.
func (l *objectLife) end() {
	for i := range l {
		callers := objectCallers()
		l[i].released.Store(&callers)
	}
}

// taken says where the life began, "" in a release build.
func (l *objectLife) taken() (at string) {
	for i := range l {
		if l[i] != nil {
			at = objectSite(l[i].taken)
		}
	}
	return at
}

// released says where the life ended, "" in a release build.
func (l *objectLife) released() (at string) {
	for i := range l {
		if callers := l[i].released.Load(); callers != nil {
			at = objectSite(*callers)
		}
	}
	return at
}

// objectPackage begins the name of each function of this package, but not of its tests.
const objectPackage = "github.com/airlock-ecs/airlock/pool."

// objectCallers is the stack above the methods of this file.
func objectCallers() []uintptr {
	callers := make([]uintptr, 16)
	return callers[:runtime.Callers(3, callers)]
}

// objectSite writes the first callers outside of this package, the innermost first.
func objectSite(callers []uintptr) string {
	var (
		site   []string
		frames = runtime.CallersFrames(callers)
	)
	for more := len(callers) > 0; more && len(site) < 3; {
		var f runtime.Frame
		f, more = frames.Next()
		if !strings.HasPrefix(f.Function, objectPackage) && !strings.HasPrefix(f.Function, "runtime.") {
			site = append(site, fmt.Sprintf("%s (%s:%d)", filepath.Base(f.Function), filepath.Base(f.File), f.Line))
		}
	}
	return strings.Join(site, ", called by ")
}
