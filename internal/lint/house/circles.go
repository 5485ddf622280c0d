package main

import (
	"cmp"
	"path/filepath"
	"slices"
)

// circles returns the sets of two and more files of a room that use one another's declarations in
// a circle, the longest first.
func (h *house) circles(r *room) []circle {
	lines := make(map[string]int)
	for _, f := range r.files {
		lines[f.name] = f.lines
	}
	uses := make(map[string]map[string]bool) // files, by the file that uses them
	for name := range lines {
		uses[name] = make(map[string]bool)
	}
	for id, o := range r.info.Uses {
		if o.Pkg() == r.pkg {
			from, to := h.set.Position(id.Pos()).Filename, h.set.Position(o.Pos()).Filename
			uses[filepath.Base(from)][filepath.Base(to)] = true
		}
	}
	reach := make(map[string]map[string]bool)
	for from := range lines {
		reach[from] = reachable(uses, from)
	}

	var out []circle
	seen := make(map[string]bool)
	for from := range lines {
		if seen[from] {
			continue
		}
		var c circle
		for to := range lines {
			if reach[from][to] && reach[to][from] {
				c.Files, c.Lines = append(c.Files, to), c.Lines+lines[to]
				seen[to] = true
			}
		}
		if len(c.Files) > 1 {
			slices.Sort(c.Files)
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b circle) int {
		return cmp.Or(cmp.Compare(b.Lines, a.Lines), cmp.Compare(a.Files[0], b.Files[0]))
	})
	return out
}

// reachable returns what can be reached from a name over the arrows.
func reachable(arrows map[string]map[string]bool, from string) map[string]bool {
	reached := make(map[string]bool)
	for next := []string{from}; len(next) > 0; {
		at := next[0]
		next = next[1:]
		for to := range arrows[at] {
			if !reached[to] {
				reached[to] = true
				next = append(next, to)
			}
		}
	}
	return reached
}
