package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The drawing in docs/architecture.md lies between these lines.
const (
	drawingBegins = "<!-- Drawn by go run ./internal/lint/house -draw -->\n"
	drawingEnds   = "<!-- End of the drawing -->\n"
)

// pagePath is the page with the drawing, below the top.
const pagePath = "docs/architecture.md"

// floors puts each room on the lowest floor that is above all that it imports.
func (h *house) floors() [][]string {
	imports := make(map[string][]string)
	for _, r := range h.rooms {
		imports[r.name] = r.imports
	}
	level := make(map[string]int)
	var floorOf func(name string) int
	floorOf = func(name string) int {
		n, known := level[name]
		if known {
			return n
		}
		for _, below := range imports[name] {
			if _, ours := imports[below]; ours {
				n = max(n, floorOf(below)+1)
			}
		}
		level[name] = n
		return n
	}
	var floors [][]string
	for _, r := range h.rooms {
		n := floorOf(r.name)
		for len(floors) <= n {
			floors = append(floors, nil)
		}
		floors[n] = append(floors[n], title(r.name))
	}
	for _, f := range floors {
		slices.Sort(f)
	}
	return floors
}

// drawing returns the floors as the page shows them, the highest first.
func (h *house) drawing() string {
	const width = 118 // of a line, in bytes
	floors := h.floors()
	var b strings.Builder
	b.WriteString(drawingBegins + "```\n")
	for n := len(floors) - 1; n >= 0; n-- {
		line := fmt.Sprintf("%2d ", n)
		for _, name := range floors[n] {
			if len(line)+2+len(name) > width {
				b.WriteString(strings.TrimRight(line, " ") + "\n")
				line = "   "
			}
			line += "  " + name
		}
		b.WriteString(line + "\n")
	}
	b.WriteString("```\n" + drawingEnds)
	return b.String()
}

// drawn returns the drawing that the page has, and what lies before and after it.
func drawn(page string) (before, drawing, after string, err error) {
	i := strings.Index(page, drawingBegins)
	j := strings.Index(page, drawingEnds)
	if i < 0 || j < i {
		return "", "", "", errors.New(pagePath + " has no place for the drawing")
	}
	j += len(drawingEnds)
	return page[:i], page[i:j], page[j:], nil
}

// draw draws the page anew.
func (h *house) draw() error {
	path := filepath.Join(h.top, filepath.FromSlash(pagePath))
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, _, after, err := drawn(string(page))
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(before+h.drawing()+after), 0o644)
}
