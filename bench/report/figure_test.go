package report_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jaydb/jay/bench/report"
)

// box is the rectangle of a text in a plot, with y from the bottom.
type box struct {
	text                 string
	left, right, low, up float64
}

var (
	svgSize = regexp.MustCompile(`viewBox="0 0 ([0-9.]+) ([0-9.]+)"`)
	svgBox  = regexp.MustCompile(`<text x="([^"]*)" y="([^"]*)" textLength="([^"]*)"[^>]*font-size:([0-9.]+)px[^>]*>([^<]*)<`)
)

// texts returns the texts of a plot, and its size.
func texts(t *testing.T, file string) (boxes []box, width, height float64) {
	t.Helper()
	svg, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	float := func(s string) float64 {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	size := svgSize.FindSubmatch(svg)
	for _, m := range svgBox.FindAllStringSubmatch(string(svg), -1) {
		left, low, font := float(m[1]), -float(m[2]), float(m[4])
		boxes = append(boxes, box{m[5], left, left + float(m[3]), low - 0.2*font, low + 0.75*font})
	}
	if len(size) == 0 || len(boxes) == 0 || len(boxes) != strings.Count(string(svg), "<text") {
		t.Fatalf("%s: %d texts were found of %d", file, len(boxes), strings.Count(string(svg), "<text"))
	}
	return boxes, float(string(size[1])), float(string(size[2]))
}

// number is a label of an axis.
var number = regexp.MustCompile(`^[0-9][0-9.,e+-]*$`)

// checkPlots checks that in no plot of dir a text overlaps another one or is cut off,
// and that each axis that has numbers has two or more. It returns the plots' names.
func checkPlots(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.svg"))
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, len(files))
	for i, file := range files {
		name := filepath.Base(file)
		names[i] = name
		boxes, width, height := texts(t, file)
		low := slices.MinFunc(boxes, func(a, b box) int { return int(a.low - b.low) }).low
		onX, onY := 0, 0
		for i, b := range boxes {
			if b.left < 0 || b.right > width || b.low < 0 || b.up > height {
				t.Errorf("%s: %q is cut off: %v to %v of %v, %v to %v of %v", name, b.text, b.left, b.right, width, b.low, b.up, height)
			}
			for _, c := range boxes[i+1:] {
				if b.left < c.right && c.left < b.right && b.low < c.up && c.low < b.up {
					t.Errorf("%s: %q overlaps %q", name, b.text, c.text)
				}
			}
			switch {
			case !number.MatchString(b.text):
			case b.low < low+1:
				onX++
			default:
				onY++
			}
		}
		if onX < 2 || strings.HasPrefix(name, "growth") && onY < 2 {
			t.Errorf("%s has %d numbers on the x axis, and %d on the y axis", name, onX, onY)
		}
	}
	return names
}

// Ensure that in every plot of every workload the texts can be read and the axes have
// numbers. One plot once had no number on its y axis, and legends lay on data.
func TestPlots_Readable(t *testing.T) {
	dir := t.TempDir()
	if err := sample().Plot(dir); err != nil {
		t.Fatal(err)
	}
	if names := checkPlots(t, dir); !slices.Contains(names, "queries.svg") || !slices.Contains(names, "growth-get.svg") {
		t.Errorf("plots: %v", names)
	}
}

// Ensure that the published plots and the table of docs/benchmarks.md are those of the
// stored results: go run . -plots ../docs/benchmarks makes both anew.
func TestPlots_Published(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("other processors may round coordinates otherwise")
	}
	const published = "../../docs/benchmarks"
	dir := t.TempDir()
	for _, name := range []string{"results.json", "growth.json"} {
		text, err := os.ReadFile(filepath.Join(published, name))
		if err != nil {
			t.Fatal(err)
		}
		var r report.Report
		if err := json.Unmarshal(text, &r); err != nil {
			t.Fatal(err)
		}
		if err := r.Plot(dir); err != nil {
			t.Fatal(err)
		}
		if name == "growth.json" {
			continue
		}
		page, err := os.ReadFile("../../docs/benchmarks.md")
		if err != nil {
			t.Fatal(err)
		}
		if table := r.Summary(); !strings.Contains(strings.ReplaceAll(string(page), "\r\n", "\n"), table) {
			t.Errorf("the table of docs/benchmarks.md is not that of results.json:\n%s", table)
		}
	}
	for _, name := range checkPlots(t, dir) {
		want, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(published, name))
		if err != nil || strings.ReplaceAll(string(got), "\r\n", "\n") != string(want) {
			t.Errorf("%s is not drawn from the stored results: %v", name, err)
		}
	}
}
