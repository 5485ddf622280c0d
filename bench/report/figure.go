package report

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Sizes of a figure. Its width is that of a page of GitHub.
const (
	figureWidth  = 26 * vg.Centimeter
	figureMargin = 12
	titleSize    = 14
	textSize     = 10
	boldWeight   = 3 // of golang.org/x/image/font
)

// sans is the typeface of all texts. Its widths are those of Arial and Helvetica.
var sans = font.Font{Typeface: "Liberation", Variant: "Sans"}

// figure is a plot below its title, a note and a legend, which lie above the data
// and never on it. No text is rotated.
type figure struct {
	*plot.Plot
	title, note string
	entries     []entry
	area        vg.Length // height of the plot with its axes
}

// entry is one name of the legend with what is drawn beside it.
type entry struct {
	name       string
	thumbnails []plot.Thumbnailer
}

func newFigure(title, note string) *figure {
	f := &figure{Plot: plot.New(), title: title, note: note}
	for _, style := range []*text.Style{&f.X.Tick.Label, &f.Y.Tick.Label} {
		style.Font = font.Font{Typeface: sans.Typeface, Variant: sans.Variant, Size: textSize}
	}
	return f
}

// addIntervals draws dots with bars, and names them in the legend.
func (f *figure) addIntervals(name string, v intervals) {
	if len(v.XYs) == 0 {
		return
	}
	bars, err := plotter.NewXErrorBars(&v)
	if err != nil {
		panic(err) // only for figures that are no numbers
	}
	bars.Color, bars.CapWidth = looks[name].color, 0
	dots, err := plotter.NewScatter(v.XYs)
	if err != nil {
		panic(err)
	}
	dots.Color, dots.Shape, dots.Radius = looks[name].color, looks[name].shape, vg.Points(3.2)
	f.Add(bars, dots)
	f.entries = append(f.entries, entry{name, []plot.Thumbnailer{dots}})
}

// addLine draws a line with dots, and names it in the legend.
func (f *figure) addLine(name string, points plotter.XYs) {
	if len(points) == 0 {
		return
	}
	line, dots, err := plotter.NewLinePoints(points)
	if err != nil {
		panic(err) // only for figures that are no numbers
	}
	line.Color, dots.Color, dots.Shape, dots.Radius = looks[name].color, looks[name].color, looks[name].shape, vg.Points(3.2)
	f.Add(line, dots)
	f.entries = append(f.entries, entry{name, []plot.Thumbnailer{line, dots}})
}

// style returns the style of a text.
func style(size vg.Length, bold bool) text.Style {
	face := font.Font{Typeface: sans.Typeface, Variant: sans.Variant, Size: size}
	if bold {
		face.Weight = boldWeight
	}
	return text.Style{Color: color.Black, Font: face, YAlign: text.YBottom, Handler: plot.DefaultTextHandler}
}

// place is where an entry of the legend stands: its row, and the left end.
type place struct {
	row int
	x   vg.Length
}

const (
	thumbnailWidth = 18
	entryGap       = 18
	legendRow      = 16
)

// legend returns where the entries stand, and the number of rows.
func (f *figure) legend() (places []place, rows int) {
	at := place{x: figureMargin}
	for _, e := range f.entries {
		width := thumbnailWidth + 4 + style(textSize, false).Width(e.name)
		if at.x+width > figureWidth-figureMargin {
			at = place{row: at.row + 1, x: figureMargin}
		}
		places = append(places, at)
		at.x += width + entryGap
	}
	return places, at.row + 1
}

// height returns the height of the figure.
func (f *figure) height() vg.Length { return f.head() + f.area + 2*figureMargin }

// head returns the height of title, note and legend.
func (f *figure) head() vg.Length {
	_, rows := f.legend()
	return titleSize + 4 + textSize + 8 + vg.Length(rows)*legendRow + 4
}

// draw draws the figure.
func (f *figure) draw(c draw.Canvas) {
	c.FillPolygon(color.White, []vg.Point{{X: c.Min.X, Y: c.Min.Y}, {X: c.Max.X, Y: c.Min.Y}, {X: c.Max.X, Y: c.Max.Y}, {X: c.Min.X, Y: c.Max.Y}})
	y := c.Max.Y - figureMargin - titleSize
	c.FillText(style(titleSize, true), vg.Point{X: figureMargin, Y: y}, f.title)
	y -= 4 + textSize
	c.FillText(style(textSize, false), vg.Point{X: figureMargin, Y: y}, f.note)
	y -= 8
	places, _ := f.legend()
	for i, e := range f.entries {
		low := y - vg.Length(places[i].row+1)*legendRow
		box := draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{
			Min: vg.Point{X: places[i].x, Y: low}, Max: vg.Point{X: places[i].x + thumbnailWidth, Y: low + textSize},
		}}
		for _, t := range e.thumbnails {
			t.Thumbnail(&box)
		}
		c.FillText(style(textSize, false), vg.Point{X: box.Max.X + 4, Y: low}, e.name)
	}
	f.Plot.Draw(draw.Crop(c, figureMargin, -figureMargin, figureMargin, -figureMargin-f.head()))
}

// save writes the figure as SVG.
func (f *figure) save(file string) error {
	canvas := vgsvg.New(figureWidth, f.height())
	f.draw(draw.New(canvas))
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return err
	}
	svg, err := fitTexts(b.String())
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(svg), 0o644)
}

// svgText is a text as vgsvg writes it.
var svgText = regexp.MustCompile(`<text x="([^"]*)" y="([^"]*)" transform="scale\(1, -1\)"\s+style="font-family:([^;"]*);font-variant:normal;font-weight:(\w+);font-style:normal;font-size:([0-9.]+)px([^"]*)">([^<]*)</text>`)

// unescape undoes html.EscapeString.
var unescape = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&#34;", `"`, "&#39;", "'", "&amp;", "&")

// fitTexts gives each text of an SVG the width that the layout expects of it, whatever
// font the reader has, and names fonts of the same widths.
func fitTexts(svg string) (string, error) {
	var failed error
	svg = svgText.ReplaceAllStringFunc(svg, func(s string) string {
		m := svgText.FindStringSubmatch(s)
		width, err := textWidth(unescape.Replace(m[7]), m[5], m[4] == "bold")
		if err != nil {
			failed = err
		}
		return fmt.Sprintf(`<text x="%s" y="%s" textLength="%.2f" lengthAdjust="spacingAndGlyphs" transform="scale(1, -1)" `+
			`style="font-family:'Liberation Sans',Arial,Helvetica,sans-serif;font-weight:%s;font-size:%spx%s">%s</text>`,
			m[1], m[2], width, m[4], m[5], m[6], m[7])
	})
	if n := strings.Count(svg, "<text"); n != strings.Count(svg, "textLength=") {
		return "", fmt.Errorf("only some of %d texts were found: has vgsvg changed?", n)
	}
	return svg, failed
}

// textWidth returns the width of a text in points.
func textWidth(s, size string, bold bool) (float64, error) {
	points, err := strconv.ParseFloat(size, 64)
	return style(vg.Length(points), bold).Width(s).Points(), err
}

// logarithmic makes an axis that has its data already logarithmic, with numbers on
// it however short it is.
func logarithmic(a *plot.Axis) {
	a.Scale = plot.LogScale{}
	a.Tick.Marker = logTicks{}
	a.Min, a.Max = a.Min*0.85, a.Max*1.18
}

// logTicks puts numbers on a logarithmic axis: the powers of ten if the axis has
// enough of them, else finer steps.
type logTicks struct{}

// logSteps are the steps of a decade, the coarsest first.
var logSteps = [][]float64{
	{1}, {1, 2, 5}, {1, 1.5, 2, 3, 4, 5, 6, 8},
	{1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9, 2, 2.2, 2.4, 2.6, 2.8, 3, 3.5, 4, 4.5, 5, 5.5, 6, 6.5, 7, 7.5, 8, 8.5, 9, 9.5},
}

// Ticks returns at least three numbers where the steps have them, and the marks of
// 2 to 9 without numbers.
func (logTicks) Ticks(lo, hi float64) (ticks []plot.Tick) {
	for _, steps := range logSteps {
		ticks = ticks[:0]
		for decade := math.Floor(math.Log10(lo)); decade <= math.Log10(hi); decade++ {
			for _, step := range steps {
				if v := step * math.Pow(10, decade); v >= lo && v <= hi {
					ticks = append(ticks, plot.Tick{Value: v, Label: number(v)})
				}
			}
		}
		if len(ticks) >= 3 {
			break
		}
	}
	for decade := math.Floor(math.Log10(lo)); decade <= math.Log10(hi); decade++ {
		for step := 2.; step < 10; step++ {
			if v := step * math.Pow(10, decade); v >= lo && v <= hi {
				ticks = append(ticks, plot.Tick{Value: v})
			}
		}
	}
	return ticks
}

// number writes a number with commas between thousands.
func number(v float64) string {
	s := strconv.FormatFloat(v, 'f', -1, 64)
	if v < 1 || v != math.Trunc(v) {
		return strconv.FormatFloat(v, 'g', 4, 64)
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
