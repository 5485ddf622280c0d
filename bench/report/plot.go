package report

import (
	"image/color"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/jaydb/jay/bench/engine"
	"github.com/jaydb/jay/bench/workload"
)

// The groups of workloads that share a plot, and its title.
var groups = []struct{ name, title string }{
	{"bulk", "Bulk load"},
	{"durable", "Durable inserts, one by one"},
	{"reads", "Reads by ID"},
	{"scans", "Scans"},
	{"changes", "Updates, deletes, mixed"},
	{"sizes", "Documents of other sizes"},
	{"open", "Opening"},
	{"sessions", "Sessions, patches, bulk writer"},
	{"queries", "Queries"},
}

// look is how an engine is drawn, the same in every plot.
type look struct {
	color color.RGBA
	shape draw.GlyphDrawer
}

var looks = map[string]look{
	engine.Raw:       {color.RGBA{R: 0x66, G: 0x66, B: 0x66, A: 255}, draw.PlusGlyph{}},
	engine.Jay:       {color.RGBA{R: 0x00, G: 0x5f, B: 0xcc, A: 255}, draw.CircleGlyph{}},
	"bbolt":          {color.RGBA{R: 0xd5, G: 0x5e, A: 255}, draw.SquareGlyph{}},
	"bbolt-tuned":    {color.RGBA{R: 0xf2, G: 0xa9, B: 0x7a, A: 255}, draw.BoxGlyph{}},
	"badger":         {color.RGBA{R: 0x00, G: 0x9e, B: 0x73, A: 255}, draw.TriangleGlyph{}},
	"badgerhold":     {color.RGBA{R: 0x7a, G: 0xc5, B: 0x8f, A: 255}, draw.PyramidGlyph{}},
	"buntdb":         {color.RGBA{R: 0xcc, G: 0x79, B: 0xa7, A: 255}, draw.RingGlyph{}},
	"sqlite-modernc": {color.RGBA{R: 0xe6, G: 0x9f, A: 255}, draw.CrossGlyph{}},
	"sqlite-mattn":   {color.RGBA{R: 0x8c, G: 0x6d, B: 0x1f, A: 255}, draw.BoxGlyph{}},

	engine.JayBulk:    {color.RGBA{R: 0x00, G: 0x9e, B: 0x73, A: 255}, draw.TriangleGlyph{}},
	engine.JayEncode:  {color.RGBA{R: 0x7a, G: 0xb5, B: 0xe8, A: 255}, draw.BoxGlyph{}},
	engine.JaySession: {color.RGBA{R: 0xd5, G: 0x5e, A: 255}, draw.SquareGlyph{}},
	engine.JayPut:     {color.RGBA{R: 0x56, G: 0x9f, B: 0xb4, A: 255}, draw.RingGlyph{}},
	engine.JayPatch:   {color.RGBA{R: 0xcc, G: 0x79, B: 0xa7, A: 255}, draw.PyramidGlyph{}},
}

// plot writes the plots, NAME.svg, one for each group that has rows.
func (r *Report) plot(dir string) error {
	for _, g := range groups {
		var rows []*Row
		for _, row := range r.Rows {
			if row.Workload.Group == g.name {
				rows = append(rows, row)
			}
		}
		if len(rows) == 0 {
			continue
		}
		if err := r.plotGroup(filepath.Join(dir, g.name+".svg"), g.title, rows); err != nil {
			return err
		}
	}
	return r.plotGrowth(dir)
}

// plotGroup draws one row of dots for each workload, one dot for each engine,
// with a line from its least to its most.
func (r *Report) plotGroup(file, title string, rows []*Row) error {
	p := plot.New()
	p.Title.Text = title + ": less is better"
	p.X.Label.Text = "µs per " + rows[0].Workload.Unit
	p.Add(plotter.NewGrid())
	names := make([]string, len(rows))
	for i, row := range rows {
		names[len(rows)-1-i] = "  " + row.Workload.Name // the first on top
	}
	p.NominalY(names...)
	for _, e := range r.Engines {
		var points intervals
		for i, row := range rows {
			if l := row.Line(e.Name); l != nil && l.Spread.Min > 0 {
				points.add(l, float64(len(rows)-1-i))
			}
		}
		if err := points.draw(p, e.Name); err != nil {
			return err
		}
	}
	logarithmic(&p.X)
	p.X.Max *= 30 // room for the legend
	p.Y.Min, p.Y.Max = -0.5, float64(len(rows))-0.5
	p.Legend.Top = true
	height := 3*vg.Centimeter + vg.Length(max(6, len(rows)))*1.1*vg.Centimeter
	return p.Save(26*vg.Centimeter, height, file)
}

// logarithmic makes an axis that has its data already logarithmic.
func logarithmic(a *plot.Axis) {
	a.Scale = plot.LogScale{}
	a.Tick.Marker = plot.LogTicks{Prec: -1}
	a.Min, a.Max = a.Min*0.8, a.Max*1.25
}

// intervals are medians with their least and most, along x.
type intervals struct {
	plotter.XYs
	plotter.XErrors
}

func (v *intervals) add(l *Line, y float64) {
	s := l.Spread
	v.XYs = append(v.XYs, plotter.XY{X: s.Median, Y: y})
	v.XErrors = append(v.XErrors, struct{ Low, High float64 }{s.Median - s.Min, s.Max - s.Median})
}

func (v *intervals) draw(p *plot.Plot, name string) error {
	if len(v.XYs) == 0 {
		return nil
	}
	bars, err := plotter.NewXErrorBars(v)
	if err != nil {
		return err
	}
	bars.Color = looks[name].color
	dots, err := plotter.NewScatter(v.XYs)
	if err != nil {
		return err
	}
	dots.Color, dots.Shape, dots.Radius = looks[name].color, looks[name].shape, vg.Points(4)
	p.Add(bars, dots)
	p.Legend.Add(name, dots)
	return nil
}

// plotGrowth draws costs and memory against the number of documents.
func (r *Report) plotGrowth(dir string) error {
	for _, g := range []struct {
		file, row, title, unit string
		value                  func(l *Line) float64
	}{
		{"growth-load.svg", rowBulk, "Bulk load, unsynced", "µs per document", micros},
		{"growth-get.svg", rowGet, "Random get, in cache", "µs per get", micros},
		{"growth-get-default-cache.svg", "random get, default cache", "Random get, default cache", "µs per get", micros},
		{"growth-memory-load.svg", rowBulk, "Memory during a bulk load", "peak RSS, MiB", memory},
		{"growth-memory-get.svg", "random get, default cache", "Memory during random gets, default cache", "peak RSS, MiB", memory},
	} {
		var rows []*Row
		for _, row := range r.Rows {
			if row.Workload.Group == workload.GroupGrowth && row.Workload.Name == g.row {
				rows = append(rows, row)
			}
		}
		if len(rows) < 2 {
			continue
		}
		if err := r.plotLines(filepath.Join(dir, g.file), g.title, g.unit, rows, g.value); err != nil {
			return err
		}
	}
	return nil
}

func micros(l *Line) float64 { return l.Spread.Median }
func memory(l *Line) float64 { return float64(l.Summary.PeakRSS) / (1 << 20) }

// plotLines draws a line for each engine.
func (r *Report) plotLines(file, title, unit string, rows []*Row, value func(l *Line) float64) error {
	p := plot.New()
	p.Title.Text = title
	p.X.Label.Text, p.Y.Label.Text = "documents", unit
	p.Add(plotter.NewGrid())
	for _, e := range r.Engines {
		var points plotter.XYs
		for _, row := range rows {
			if l := row.Line(e.Name); l != nil && value(l) > 0 {
				points = append(points, plotter.XY{X: float64(row.Workload.Docs), Y: value(l)})
			}
		}
		if len(points) == 0 {
			continue
		}
		slices.SortFunc(points, func(a, b plotter.XY) int { return int(a.X - b.X) })
		line, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return err
		}
		line.Color, dots.Color, dots.Shape = looks[e.Name].color, looks[e.Name].color, looks[e.Name].shape
		p.Add(line, dots)
		p.Legend.Add(e.Name, line, dots)
	}
	logarithmic(&p.X)
	logarithmic(&p.Y)
	p.X.Max *= 8 // room for the legend
	p.Legend.Top = true
	return p.Save(20*vg.Centimeter, 13*vg.Centimeter, file)
}
