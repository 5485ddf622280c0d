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

// overview is the plot of the README: one row of each kind, and the engines that keep
// their data on disk and that a program would choose between.
var overview = struct{ rows, engines []string }{
	[]string{
		"bulk load, synced", "durable insert, 1 goroutine", "durable insert, 32 goroutines", "random get, in cache", "typed get",
		"collection scan", "update, durable, 32 goroutines", "query: equality on an index, 10 documents",
		"query: range and order by an index, top 10",
	},
	[]string{engine.Jay, "bbolt", "bbolt-tuned", "badger", "sqlite-modernc", "sqlite-mattn"},
}

// Plot writes the plots of the report to dir: overview.svg, NAME.svg for each
// group that has rows, and growth-NAME.svg.
func (r *Report) Plot(dir string) error {
	var chosen []*Row
	for _, name := range overview.rows {
		for _, row := range r.Rows {
			if row.Workload.Name == name && row.Workload.Group != workload.GroupGrowth {
				chosen = append(chosen, row)
				break
			}
		}
	}
	if len(chosen) == len(overview.rows) {
		if err := r.plotRows("Jay and its peers", chosen, overview.engines).save(filepath.Join(dir, "overview.svg")); err != nil {
			return err
		}
	}
	all := make([]string, len(r.Engines))
	for i, e := range r.Engines {
		all[i] = e.Name
	}
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
		if err := r.plotRows(g.title, rows, all).save(filepath.Join(dir, g.name+".svg")); err != nil {
			return err
		}
	}
	return r.plotGrowth(dir)
}

// plotRows draws a band for each workload, and in it a line for each engine that
// has a figure: a dot at the median, a bar from the least to the most.
func (r *Report) plotRows(title string, rows []*Row, engines []string) *figure {
	engines = slices.DeleteFunc(slices.Clone(engines), func(name string) bool {
		return !slices.ContainsFunc(rows, func(row *Row) bool { l := row.Line(name); return l != nil && l.Spread.Min > 0 })
	})
	unit := rows[0].Workload.Unit
	if slices.ContainsFunc(rows, func(row *Row) bool { return row.Workload.Unit != unit }) {
		unit = "operation"
	}
	f := newFigure(title, "µs per "+unit+", logarithmic: left is better. Dot: median of the rounds; bar: least and most.")

	names := make([]string, len(rows))
	f.Add(bands(len(rows)))
	grid := plotter.NewGrid()
	grid.Horizontal.Width = 0
	f.Add(grid)
	for i, row := range rows {
		names[len(rows)-1-i] = row.Workload.Name // the first on top
	}
	f.NominalY(names...)
	f.Y.Tick.Length, f.Y.LineStyle.Width = 0, 0
	f.Y.Padding = vg.Points(4)
	for k, name := range engines {
		// The engines of a band lie below one another, so that no dot hides another one.
		offset := 0.8 * (0.5 - (float64(k)+0.5)/float64(len(engines)))
		var points intervals
		for i, row := range rows {
			if l := row.Line(name); l != nil && l.Spread.Min > 0 {
				points.add(l, float64(len(rows)-1-i)+offset)
			}
		}
		f.addIntervals(name, points)
	}
	logarithmic(&f.X)
	f.Y.Min, f.Y.Max = -0.5, float64(len(rows))-0.5
	band := max(vg.Points(20), vg.Length(len(engines))*vg.Points(7)+vg.Points(6))
	f.area = vg.Length(len(rows))*band + vg.Points(40)
	return f
}

// bands shades every second of n rows.
type bands int

// Plot draws the bands.
func (n bands) Plot(c draw.Canvas, p *plot.Plot) {
	_, y := p.Transforms(&c)
	for i := 0; i < int(n); i += 2 {
		lo, hi := y(float64(i)-0.5), y(float64(i)+0.5)
		c.FillPolygon(color.Gray{Y: 0xf1}, []vg.Point{{X: c.Min.X, Y: lo}, {X: c.Max.X, Y: lo}, {X: c.Max.X, Y: hi}, {X: c.Min.X, Y: hi}})
	}
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

// plotGrowth draws costs and memory against the number of documents.
func (r *Report) plotGrowth(dir string) error {
	for _, g := range []struct {
		file, row, title, unit string
		value                  func(l *Line) float64
	}{
		{"growth-load.svg", rowBulk, "Bulk load, unsynced", "µs per document", micros},
		{"growth-get.svg", rowGet, "Random get, in cache", "µs per get", micros},
		{"growth-get-default-cache.svg", "random get, default cache", "Random get, default cache", "µs per get", micros},
		{"growth-memory-load.svg", rowBulk, "Memory during a bulk load", "peak RSS in MiB", memory},
		{"growth-memory-get.svg", "random get, default cache", "Memory during random gets, default cache", "peak RSS in MiB", memory},
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
		if err := r.plotLines(g.title, g.unit, rows, g.value).save(filepath.Join(dir, g.file)); err != nil {
			return err
		}
	}
	return nil
}

func micros(l *Line) float64 { return l.Spread.Median }
func memory(l *Line) float64 { return float64(l.Summary.PeakRSS) / (1 << 20) }

// plotLines draws a line for each engine.
func (r *Report) plotLines(title, unit string, rows []*Row, value func(l *Line) float64) *figure {
	f := newFigure(title, unit+", by the number of documents; both logarithmic.")
	f.Add(plotter.NewGrid())
	for _, e := range r.Engines {
		var points plotter.XYs
		for _, row := range rows {
			if l := row.Line(e.Name); l != nil && value(l) > 0 {
				points = append(points, plotter.XY{X: float64(row.Workload.Docs), Y: value(l)})
			}
		}
		slices.SortFunc(points, func(a, b plotter.XY) int { return int(a.X - b.X) })
		f.addLine(e.Name, points)
	}
	logarithmic(&f.X)
	logarithmic(&f.Y)
	f.area = 9 * vg.Centimeter
	return f
}
