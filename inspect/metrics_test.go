package inspect_test

import (
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/inspect"
	"github.com/airlock-ecs/airlock/registry"
)

// sample is one line of an exposition.
type sample struct {
	labels map[string]string
	value  float64
}

// pairs are the labels as value takes them.
func (s sample) pairs() (list []string) {
	for name, value := range s.labels {
		list = append(list, name, value)
	}
	return list
}

type exposition map[string][]sample

// value is that of the sample with some labels; not a number if there is none.
func (x exposition) value(name string, pairs ...string) float64 {
next:
	for _, s := range x[name] {
		for i := 0; i < len(pairs); i += 2 {
			if s.labels[pairs[i]] != pairs[i+1] {
				continue next
			}
		}
		return s.value
	}
	return math.NaN()
}

var (
	nameSyntax  = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*`)
	labelSyntax = regexp.MustCompile(`^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"`)
	unescape    = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n")
)

// parse reads the text format strictly: a family's lines together behind one HELP and one TYPE, and no series twice.
func parse(t *testing.T, text string) exposition {
	t.Helper()
	all, seen, family, help := exposition{}, map[string]bool{}, "", ""
	require.True(t, strings.HasSuffix(text, "\n"))
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if rest, ok := strings.CutPrefix(line, "# HELP "); ok {
			help, _, _ = strings.Cut(rest, " ")
			continue
		}
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			fields := strings.Fields(rest)
			require.Len(t, fields, 2, line)
			require.Contains(t, []string{"counter", "gauge", "histogram"}, fields[1], line)
			require.False(t, seen["# "+fields[0]], line)
			require.Equal(t, help, fields[0])
			family = fields[0]
			seen["# "+family] = true
			continue
		}
		name := nameSyntax.FindString(line)
		require.NotEmpty(t, name, line)
		base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")
		require.True(t, name == family || base == family, line)
		rest, s := line[len(name):], sample{labels: map[string]string{}}
		if strings.HasPrefix(rest, "{") {
			for rest[0] == '{' || rest[0] == ',' {
				m := labelSyntax.FindStringSubmatch(rest[1:])
				require.NotNil(t, m, line)
				s.labels[m[1]] = unescape.Replace(m[2])
				rest = rest[1+len(m[0]):]
			}
			require.True(t, strings.HasPrefix(rest, "}"), line)
			rest = rest[1:]
		}
		series := line[:len(line)-len(rest)]
		require.False(t, seen[series], "twice: %s", series)
		seen[series] = true
		var err error
		s.value, err = strconv.ParseFloat(strings.TrimPrefix(rest, " "), 64)
		require.NoError(t, err, line)
		all[name] = append(all[name], s)
	}
	return all
}

func TestMetricsAreTheFiguresInTheFormatOfPrometheus(t *testing.T) {
	k := newWorld(t, registry.Config{}, inspect.Config{})
	hs := k.fleet(10)
	k.step(func(w *registry.Window) { w.DestroyBatch(hs[:3]) })
	k.step(func(*registry.Window) {})
	resp, err := k.server.Client().Get(k.server.URL + "/metrics")
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	assert.Equal(t, "text/plain; version=0.0.4; charset=utf-8", resp.Header.Get("Content-Type"))
	status, text := k.get("/metrics")
	require.Equal(t, http.StatusOK, status)
	m := parse(t, text)
	for name, want := range map[string]float64{
		"airlock_frame": 3, "airlock_frames_total": 3, "airlock_live_entities": 7, "airlock_allocated_slots": 10,
		"airlock_claims_total": 10, "airlock_ends_total": 3, "airlock_frame_budget_seconds": 0.005, "airlock_frame_seconds_count": 3,
	} {
		assert.Equal(t, want, m.value(name), name)
	}
	assert.Equal(t, 3.0, m.value("airlock_handles", "space", "local", "state", "pending"))
	assert.Equal(t, 7.0, m.value("airlock_archetype_live", "archetype", "0", "class", "ship"))
	assert.Equal(t, 1.0, m.value("airlock_state", "state", "idle"))

	// Buckets are cumulative, and end with all there is.
	last := 0.0
	for _, b := range m["airlock_frame_seconds_bucket"] {
		assert.GreaterOrEqual(t, b.value, last)
		last = b.value
	}
	assert.Equal(t, 3.0, last)
	assert.Equal(t, 3.0, m.value("airlock_frame_seconds_bucket", "le", "+Inf"))
	assert.Positive(t, m.value("airlock_frame_seconds_sum"))
}
