package main

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/airlock-ecs/airlock/declare"
	"github.com/airlock-ecs/airlock/registry"
)

// plot draws curves over the time of a world, as SVG.
type plot struct {
	title  string
	time   func(step uint64) float64
	last   uint64 // step that was sampled last
	curves []*curve
	values bool // some of them are values of slots
	out    *replacement
}

// The picture, in pixels.
const (
	plotWidth, plotHeight        = 960, 480
	plotLeft, plotTop            = 84, 48
	plotRight, plotBottom        = 760, 424 // the legend is right of that
	legendLeft, legendLine       = 780, 20
	legendRunes                  = 20
	ticksAcross, ticksUp         = 8, 6 // about so many
	plotSpanX              int64 = plotRight - plotLeft
	plotSpanY              int64 = plotBottom - plotTop
)

// plotColours stand out against white and against black. After the last one they begin again, with dashes.
var plotColours = [...]string{"#2f7ed8", "#d9640f", "#1e8e3e", "#d6336c", "#8a5cd6", "#0b8a99", "#9a7a00", "#7a7f87"}

const plotStyle = `<style>
.back { fill: #ffffff } text { fill: #333333; font: 13px sans-serif } .title { font-size: 16px }
.grid { stroke: #dddddd } .axis { stroke: #555555; fill: none }
.curve { fill: none; stroke-width: 1.6; stroke-linecap: round; stroke-linejoin: round }
@media (prefers-color-scheme: dark) {
.back { fill: #16181d } text { fill: #d8d8d8 } .grid { stroke: #33373f } .axis { stroke: #9a9a9a }
}
</style>
`

func newPlot(p *declare.Program, names []string) (*plot, error) {
	list, err := curves(p, names)
	if err != nil {
		return nil, err
	}
	title := strings.Join(strings.Fields(p.Title), " ")
	if title == "" {
		title = p.File
	}
	d := &plot{title: title, time: p.Time, curves: list}
	for _, c := range list {
		d.values = d.values || c.id != 0
	}
	return d, nil
}

// sample takes the values after so many steps.
func (d *plot) sample(r *declare.Runner, done uint64) error {
	d.last = done
	w := r.World()
	add := func(state stateOf) {
		for _, c := range d.curves {
			if c.id == 0 {
				c.add(done, float64(w.ActiveIn(c.group)), true)
				continue
			}
			if values, active := state(c.id); active {
				c.add(done, values[c.slot], true)
			} else {
				c.add(done, 0, false)
			}
		}
	}
	switch {
	case !d.values:
		add(nil)
	case done == 0:
		add(func(id uint32) ([]float64, bool) { return initial(w.Program(), id) })
	default:
		return look(r, func(a registry.Access) {
			add(func(id uint32) ([]float64, bool) {
				state, active, _ := w.State(a, id)
				return state, active
			})
		})
	}
	return nil
}

// write completes the file.
func (d *plot) write() error {
	out := d.out
	d.out = nil
	_, err := out.Write(d.svg())
	return out.commit(err)
}

// discard leaves the file as it was, if it is not complete.
func (d *plot) discard() {
	if d.out != nil {
		d.out.discard()
	}
}

func (d *plot) svg() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img">`+"\n",
		plotWidth, plotHeight, plotWidth, plotHeight)
	fmt.Fprintf(&b, "<title>%s</title>\n%s", escaped(d.title), plotStyle)
	fmt.Fprintf(&b, `<rect class="back" width="%d" height="%d"/>`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(&b, `<text class="title" x="%d" y="28">%s</text>`+"\n", plotLeft, escaped(cut(d.title, 80)))
	x := newScale(0, d.time(d.last), true)
	lo, hi, drawn := math.Inf(1), math.Inf(-1), false
	for _, c := range d.curves {
		if from, to, ok := c.bounds(); ok {
			lo, hi, drawn = min(lo, from), max(hi, to), true
		}
	}
	if !drawn {
		lo, hi = 0, 1
	}
	y := newScale(lo, hi, false)
	d.axes(&b, x, y)
	for i, c := range d.curves {
		d.curve(&b, i, c, x, y)
		d.legend(&b, i, c)
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

// axes draws the frame, and ticks with their numbers and lines.
func (d *plot) axes(b *bytes.Buffer, x, y scale) {
	for _, v := range x.ticks(ticksAcross) {
		at := coordinate(plotLeft + x.part(v.value)*float64(plotSpanX))
		fmt.Fprintf(b, `<path class="grid" d="M%s %dV%d"/><text x="%s" y="%d" text-anchor="middle">%s</text>`+"\n",
			at, plotTop, plotBottom, at, plotBottom+20, v.label)
	}
	for _, v := range y.ticks(ticksUp) {
		at := plotBottom - y.part(v.value)*float64(plotSpanY)
		fmt.Fprintf(b, `<path class="grid" d="M%d %sH%d"/><text x="%d" y="%s" text-anchor="end">%s</text>`+"\n",
			plotLeft, coordinate(at), plotRight, plotLeft-8, coordinate(at+4), v.label)
	}
	fmt.Fprintf(b, `<path class="axis" d="M%d %dV%dH%d"/>`+"\n", plotLeft, plotTop, plotBottom, plotRight)
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle">t</text>`+"\n", (plotLeft+plotRight)/2, plotBottom+42)
}

// curve draws a line, which ends where there is no value, and goes on where there is one again. A value on its
// own is a dot: a line of no length with round ends.
func (d *plot) curve(b *bytes.Buffer, number int, c *curve, x, y scale) {
	var path []byte
	down := false // the pen
	move := func(at uint64, v float64) {
		mark := byte('L')
		if !down {
			mark = 'M'
		}
		path = append(path, mark)
		path = append(path, coordinate(plotLeft+x.part(d.time(at))*float64(plotSpanX))...)
		path = append(path, ' ')
		path = append(path, coordinate(plotBottom-y.part(v)*float64(plotSpanY))...)
		if !down {
			path = append(path, "h0"...)
		}
		down = true
	}
	for _, e := range c.list {
		if e.broken {
			down = false
		}
		switch {
		case e.empty:
		case e.loAt == e.hiAt:
			move(e.loAt, e.lo)
		case e.loAt < e.hiAt:
			move(e.loAt, e.lo)
			move(e.hiAt, e.hi)
		default:
			move(e.hiAt, e.hi)
			move(e.loAt, e.lo)
		}
		if e.broken {
			down = false
		}
	}
	if len(path) > 0 {
		fmt.Fprintf(b, `<path class="curve"%s d="%s"/>`+"\n", stroke(number), path)
	}
}

func (d *plot) legend(b *bytes.Buffer, number int, c *curve) {
	at := plotTop + 8 + number*legendLine
	fmt.Fprintf(b, `<path class="curve"%s d="M%d %dh24"/><text x="%d" y="%d">%s<title>%s</title></text>`+"\n",
		stroke(number), legendLeft, at, legendLeft+32, at+4, escaped(cut(c.name, legendRunes)), escaped(c.name))
}

// stroke is the look of a line.
func stroke(number int) string {
	dashes := ""
	if number >= len(plotColours) {
		dashes = ` stroke-dasharray="7 5"`
	}
	return fmt.Sprintf(` stroke="%s"%s`, plotColours[number%len(plotColours)], dashes)
}

// coordinate is a place in the picture, to a tenth of a pixel.
func coordinate(v float64) string {
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
}

// cut shortens a text to so many characters.
func cut(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-1]) + "…"
}

// escaped is a text as XML has it.
func escaped(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&apos;").Replace(s)
}

// scale maps numbers from lo to hi to parts from 0 to 1. Halves of the numbers are used where their difference may be too large.
type scale struct{ lo, hi float64 }

// newScale leaves room round the values, unless they are to fill it.
func newScale(lo, hi float64, full bool) scale {
	const most = math.MaxFloat64 / 4
	if hi/2-lo/2 <= max(math.Abs(lo), math.Abs(hi))*1e-12 { // too near each other to tell them apart
		room := max(math.Abs(lo)*0.1, 0.5)
		if lo -= room; full {
			lo += room
		}
		hi += room
	} else if !full {
		room := hi/2*0.1 - lo/2*0.1
		lo, hi = lo-room, hi+room
	}
	return scale{max(lo, -most), min(hi, most)}
}

func (s scale) part(v float64) float64 {
	return min(max((v/2-s.lo/2)/(s.hi/2-s.lo/2), 0), 1)
}

// tick is a number on an axis.
type tick struct {
	value float64
	label string
}

// ticks are multiples of 1, 2 or 5 times a power of ten, about so many.
func (s scale) ticks(about int) (list []tick) {
	rough := (s.hi - s.lo) / float64(about)
	power := math.Pow(10, math.Floor(math.Log10(rough)))
	step := power
	for _, f := range []float64{2, 5, 10} {
		if step*1.5 < rough {
			step = power * f
		}
	}
	const nearly = 1e-9 // of a step, by which rounding may put a tick outside
	first, last := math.Ceil(s.lo/step-nearly), math.Floor(s.hi/step+nearly)
	digits := 1 + int(math.Ceil(math.Log10(max(math.Abs(first), math.Abs(last), 10))))
	for i := first; i <= last && len(list) <= 4*about; i++ {
		v := i*step + 0 // never -0
		label := strconv.FormatFloat(v, 'g', max(digits, 4), 64)
		if n, err := strconv.ParseFloat(label, 64); err == nil { // without the zeros at its end
			label = strconv.FormatFloat(n, 'g', -1, 64)
		}
		list = append(list, tick{v, strings.Replace(label, "-", "−", 1)})
	}
	return list
}
