package report_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/airlock-ecs/airlock/bench/contest"
	"github.com/airlock-ecs/airlock/bench/report"
)

func rows() []*contest.Row {
	return []*contest.Row{
		{Workload: "query", Unit: "ns", Size: 1 << 14, Ours: 0.682, Spread: 0.013, Target: contest.Target{Peer: 1, Raw: 1.05},
			Peer: &contest.Figure{Name: "tables", Cost: 0.7311, Ratio: 0.9328}, Raw: &contest.Figure{Name: "slices", Cost: 0.66, Ratio: 1.0333}},
		{Workload: "query", Unit: "ns", Size: 1 << 20, Ours: 0.9, Spread: 0.4, Target: contest.Target{Peer: 1},
			Peer: &contest.Figure{Name: "tables", Cost: 1, Ratio: 0.9}},
		{Workload: "create", Unit: "ns", Size: 10_000_000, Ours: 16.44, Allocs: 0.01234, Target: contest.Target{Peer: 0.6},
			Peer: &contest.Figure{Name: "ark", Cost: 20, Ratio: 0.8221}},
		{Workload: "frame", Unit: "ns", Size: 100_000, Ours: 1234567.8, Allocs: 12.3,
			Peer: &contest.Figure{Name: "ark", Cost: 100, Ratio: 12345.6}},
		{Workload: "memory", Unit: "B", Size: 7, Ours: 70, Spread: 0.2, Allocs: math.NaN(), Target: contest.Target{Value: 64}},
	}
}

func TestMarkdown(t *testing.T) {
	require.Equal(t, `| workload | size | ours | best peer | raw | to peer | to raw | allocs | spread | target | met |
|---|---|---|---|---|---|---|---|---|---|---|
| query | 16k | 0.68 ns | 0.73 ns (tables) | 0.66 ns (slices) | 0.933 | 1.033 | 0 | 1 % | 1 × peer, 1.05 × raw | yes |
| query | 1M | 0.90 ns | 1.00 ns (tables) |  | 0.900 |  | 0 | 40 % | 1 × peer | noisy |
| create | 10M | 16.4 ns | 20.0 ns (ark) |  | 0.822 |  | 0.012 | 0 % | 0.6 × peer | **no** |
| frame | 100k | 1,234,568 ns | 100 ns (ark) |  | 12345.6 |  | 12.3 | 0 % |  |  |
| memory | 7 | 70.0 B |  |  |  |  |  | 20 % | 64 B | **no, noisy** |
`, report.Markdown(rows()))
}

func TestTable(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, report.Table(&b, rows()))
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	require.Len(t, lines, 6)
	require.Equal(t, strings.Index(lines[0], "best peer"), strings.Index(lines[1], "0.73 ns"))
	full := errors.New("full")
	require.ErrorIs(t, report.Table(failing{full}, rows()), full)
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestSection(t *testing.T) {
	const begin, end = "<!-- bench-compare: begin -->\n", "<!-- bench-compare: end -->\n"
	for _, test := range []struct{ name, document, want string }{
		{"no markers", "# Doc\n", "# Doc\n\n## Side by side\n\n" + begin + "new\n" + end},
		{"replaced", "a\n" + begin + "old\nold\n" + end + "b\n", "a\n" + begin + "new\n" + end + "b\n"},
		{"empty", begin + end, begin + "new\n" + end},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := report.Section([]byte(test.document), "new\n")
			require.NoError(t, err)
			require.Equal(t, test.want, string(got))
			again, err := report.Section(got, "new\n")
			require.NoError(t, err)
			require.Equal(t, got, again)
		})
	}
	for _, document := range []string{begin, end, end + begin, begin + end + begin, begin + end + end} {
		_, err := report.Section([]byte(document), "new\n")
		require.ErrorIs(t, err, report.ErrMarkers, document)
	}
}

func TestChartIsWellFormedAndNamesEveryWorkload(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, report.Chart(&b, append(rows(), &contest.Row{Workload: "odd", Size: 1, Peer: &contest.Figure{Ratio: math.Inf(1)}})))
	for _, name := range []string{"query", "create", "frame", "memory", "odd"} {
		require.Contains(t, b.String(), ">"+name+"<")
	}
	d := xml.NewDecoder(&b)
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
	}
	require.Error(t, report.Chart(io.Discard, nil))
}

func TestThisMachine(t *testing.T) {
	m := report.ThisMachine(t.TempDir())
	require.Equal(t, "unknown", m.Commit)
	require.Positive(t, m.Cores)
	require.Contains(t, m.Markdown(), m.Go)
	require.Greater(t, report.AvailableBytes(), int64(1<<20))
}
