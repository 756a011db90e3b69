package report

import (
	"errors"
	"image/color"
	"io"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/airlock-ecs/airlock/bench/contest"
)

const (
	chartWidth  = 26 * vg.Centimeter
	chartMargin = 4 * vg.Centimeter    // for the title, the axis and the legend
	chartLine   = 0.62 * vg.Centimeter // of each workload
)

// Chart draws the ratios as SVG: a line for each workload, on a logarithmic axis, with a mark for
// each size. Left of one we are faster. The bigger a mark, the bigger the size.
//
// Errors: one without rows; what writing fails with.
func Chart(w io.Writer, rows []*contest.Row) error {
	if len(rows) == 0 {
		return errors.New("report: nothing to draw")
	}
	names := names(rows)
	p := plot.New()
	p.Title.Text = "airlock's cost as a multiple of others', same run"
	p.X.Label.Text = "left of 1: airlock takes less"
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.ConstantTicks(ticks(rows))
	p.Add(plotter.NewGrid())
	peers := marks(rows, names, 0.15, func(r *contest.Row) *contest.Figure { return r.Peer })
	raws := marks(rows, names, -0.15, func(r *contest.Row) *contest.Figure { return r.Raw })
	peer, raw := color.RGBA{R: 0x1f, G: 0x5f, B: 0xa8, A: 0xff}, color.RGBA{R: 0xd0, G: 0x6a, B: 0x1c, A: 0xff}
	for _, of := range []struct {
		name  string
		marks dots
		shape draw.GlyphDrawer
		color color.Color
	}{{"to the best peer", peers, draw.CircleGlyph{}, peer}, {"to the raw limit", raws, draw.PyramidGlyph{}, raw}} {
		if len(of.marks.XYs) == 0 {
			continue
		}
		s, err := plotter.NewScatter(of.marks.XYs)
		if err != nil {
			return err
		}
		s.GlyphStyle = draw.GlyphStyle{Color: of.color, Shape: of.shape, Radius: vg.Points(3)}
		s.GlyphStyleFunc = func(i int) draw.GlyphStyle {
			return draw.GlyphStyle{Color: of.color, Shape: of.shape, Radius: of.marks.radius[i]}
		}
		p.Add(s)
		p.Legend.Add(of.name, s)
	}
	one, err := plotter.NewLine(plotter.XYs{{X: 1, Y: -0.5}, {X: 1, Y: float64(len(names)) - 0.5}})
	if err != nil {
		return err
	}
	one.Width = vg.Points(1)
	p.Add(one)
	p.Legend.Top, p.Legend.Padding = true, vg.Points(3)
	slices.Reverse(names) // the first on top
	p.NominalY(names...)
	p.Y.Tick.Label.Font.Size = vg.Points(8.5) // the longest has to fit
	p.Y.Min, p.Y.Max = -0.5, float64(len(names))-0.5
	drawing, err := p.WriterTo(chartWidth, chartMargin+chartLine*vg.Length(len(names)), "svg")
	if err != nil {
		return err
	}
	_, err = drawing.WriteTo(w)
	return err
}

// names are the workloads in the order of the rows.
func names(rows []*contest.Row) (names []string) {
	for _, r := range rows {
		if !slices.Contains(names, r.Workload) {
			names = append(names, r.Workload)
		}
	}
	return names
}

// dots are marks of different sizes.
type dots struct {
	plotter.XYs
	radius []vg.Length
}

// marks are the ratios of all rows to one of their figures, a little above or below the workload's line.
func marks(rows []*contest.Row, names []string, above float64, of func(*contest.Row) *contest.Figure) (all dots) {
	for _, r := range rows {
		f := of(r)
		if f == nil || !(f.Ratio > 0) || math.IsInf(f.Ratio, 0) {
			continue
		}
		line := len(names) - 1 - slices.Index(names, r.Workload)
		all.XYs = append(all.XYs, plotter.XY{X: f.Ratio, Y: float64(line) + above})
		all.radius = append(all.radius, vg.Points(1.5+0.12*math.Log2(float64(max(1, r.Size)))))
	}
	return all
}

// ticks are where the axis is labelled: at 1, 2 and 5 of every decade that has a ratio.
func ticks(rows []*contest.Row) (all []plot.Tick) {
	least, most := 0.5, 2.0
	for _, r := range rows {
		for _, f := range []*contest.Figure{r.Peer, r.Raw} {
			if f != nil && f.Ratio > 0 && !math.IsInf(f.Ratio, 0) {
				least, most = min(least, f.Ratio), max(most, f.Ratio)
			}
		}
	}
	for decade := math.Floor(math.Log10(least)); decade <= math.Ceil(math.Log10(most)); decade++ {
		for _, digit := range []float64{1, 2, 5} {
			at := digit * math.Pow(10, decade)
			all = append(all, plot.Tick{Value: at, Label: strconv.FormatFloat(at, 'f', -1, 64)})
		}
	}
	return all
}
