package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// print prints a report as two tables.
func (r *report) print(out io.Writer) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "room\tfiles\tlines\tlargest circle\tall circles\tmost methods and functions on a type\tbiggest file\tunexported lines\tfiles without exports\tcomments\ttest files")
	for i := range r.Rooms {
		m := &r.Rooms[i]
		fmt.Fprintf(t, "%s\t%d\t%d\t%s\t%s\t%s\t%s %d\t%s\t%d\t%s\t%d\n", title(m.Name), m.Files, m.Lines, largest(m), all(m),
			most(m), m.BiggestFile.Name, m.BiggestFile.Size, percent(m.UnexportedLines, m.ExportedLines+m.UnexportedLines), len(m.NoFace), ratio(m.CommentLines, m.CodeLines), m.TestFiles)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	w := r.Whole
	_, err := fmt.Fprintf(out, `
%d rooms, %d files, %d lines; tests: %d lines
%d functions of %d lines at the median, %d at 90 %%, %d at 99 %%; %d have more than %d
%.2f lines of comments for a line of code; %d of %d exported names have no comment
%d rooms below internal, of %d lines, have no test of their own: %s
`, w.Rooms, w.Files, w.Lines, w.TestLines, w.Functions, w.Median, w.P90, w.P99, w.Long, longFunction,
		w.Comments, w.Bare, w.Exports, len(w.Untested), w.UntestedLines, strings.Join(w.Untested, ", "))
	return err
}

// title names a room for people.
func title(name string) string {
	if name == "" {
		return "jay"
	}
	return name
}

func largest(m *roomReport) string {
	if len(m.Circles) == 0 {
		return "-"
	}
	return fmt.Sprintf("%d files, %s", len(m.Circles[0].Files), percent(m.Circles[0].Lines, m.Lines))
}

func all(m *roomReport) string {
	files, lines := 0, 0
	for _, c := range m.Circles {
		files, lines = files+len(c.Files), lines+c.Lines
	}
	if files == 0 {
		return "-"
	}
	return fmt.Sprintf("%d: %d files, %s", len(m.Circles), files, percent(lines, m.Lines))
}

func most(m *roomReport) string {
	if t := m.most(); t.Size > 0 {
		return fmt.Sprintf("%s %d", t.Name, t.Size)
	}
	return "-"
}

func percent(part, whole int) string {
	if whole == 0 {
		return "-"
	}
	return fmt.Sprintf("%d %%", 100*part/whole)
}

func ratio(part, whole int) string {
	if whole == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", float64(part)/float64(whole))
}
