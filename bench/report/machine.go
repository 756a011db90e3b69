package report

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// Machine is where and of what something was measured.
type Machine struct {
	Date       string
	CPU        string
	Cores      int
	GOMAXPROCS int
	System     string // operating system and architecture
	Go         string // with experiments
	Level      string // GOAMD64, or what other architectures have for it
	Commit     string
}

// ThisMachine looks at the process and at the checkout that a directory belongs to. What it cannot
// find out is "unknown".
func ThisMachine(dir string) Machine {
	m := Machine{
		Date: time.Now().Format(time.DateOnly), CPU: "unknown", Cores: runtime.NumCPU(), GOMAXPROCS: runtime.GOMAXPROCS(0),
		System: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(), Level: "default", Commit: commit(dir),
	}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if name, ok := field(text, "model name"); ok {
			m.CPU = name
		}
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "GO"+strings.ToUpper(runtime.GOARCH) {
				m.Level = s.Key + "=" + s.Value
			}
		}
	}
	return m
}

// commit is what is checked out, with a plus if files differ from it.
func commit(dir string) string {
	git := func(args ...string) (string, error) {
		out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).Output()
		return strings.TrimSpace(string(out)), err
	}
	name, err := git("rev-parse", "--short=12", "HEAD")
	if err != nil {
		return "unknown"
	}
	if changed, err := git("status", "--porcelain", "--untracked-files=no"); err != nil || changed != "" {
		name += "+"
	}
	return name
}

// AvailableBytes is how much memory the system could still give, 4 GiB if it does not say.
func AvailableBytes() int64 {
	const otherwise = 4 << 30
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return otherwise
	}
	value, ok := field(text, "MemAvailable")
	if !ok {
		return otherwise
	}
	kib, err := strconv.ParseInt(strings.TrimSuffix(value, " kB"), 10, 64)
	if err != nil {
		return otherwise
	}
	return kib << 10
}

// field is the value in the first line "key: value" with that key.
func field(text []byte, key string) (string, bool) {
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), ":")
		if ok && strings.TrimSpace(name) == key {
			return strings.TrimSpace(value), true
		}
	}
	return "", false
}

// Markdown is the machine as a table.
func (m Machine) Markdown() string {
	return fmt.Sprintf(`| | |
|---|---|
| date, commit | %s, %s |
| processor, cores, `+"`GOMAXPROCS`"+` | %s, %d, %d |
| system, Go version, level | %s, %s, %s |
`, m.Date, m.Commit, m.CPU, m.Cores, m.GOMAXPROCS, m.System, m.Go, m.Level)
}
