package registry

import (
	"runtime"
	"strings"
	"sync"

	"github.com/airlock-ecs/airlock/internal/check"
)

// holderBook remembers, in an ecsdebug build, where each snapshot was acquired that is not released, so
// that a pin that is held for long can be told with its reader. In a release build it does nothing.
type holderBook struct {
	mu   sync.Mutex // guards open; leaf lock
	open map[*Snapshot][]uintptr
}

func (b *holderBook) came(s *Snapshot) {
	if !check.Enabled {
		return
	}
	pcs := make([]uintptr, 32)
	pcs = pcs[:runtime.Callers(3, pcs)]
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open == nil {
		b.open = map[*Snapshot][]uintptr{}
	}
	b.open[s] = pcs
}

func (b *holderBook) left(s *Snapshot) {
	if !check.Enabled {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.open, s)
}

// of is the stack of one reader that holds a frame, "" if that is not known.
func (b *holderBook) of(k *kept) string {
	if !check.Enabled {
		return ""
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for s, pcs := range b.open {
		if s.kept != k {
			continue
		}
		var out strings.Builder
		for frames := runtime.CallersFrames(pcs); ; {
			f, more := frames.Next()
			out.WriteString(f.Function + "\n\t" + f.File + "\n")
			if !more {
				return out.String()
			}
		}
	}
	return ""
}
