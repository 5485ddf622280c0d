package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"text/tabwriter"
	"time"
)

// report counts the outcomes.
type report struct {
	Seed    uint64         `json:"seed"`
	Seconds float64        `json:"seconds"`
	Images  []imageReport  `json:"images"`
	Totals  map[class]int  `json:"totals"`
	Rows    []row          `json:"rows"`
	Tail    []distanceRow  `json:"silentByDistanceFromTheEndOfTheLog"`
	Notable []notable      `json:"notable"`
	rows    map[rowKey]int // position in Rows
}

type imageReport struct {
	Name      string `json:"name"`
	Killed    bool   `json:"killed"`
	Documents int    `json:"documents"`
	Silent    int    `json:"silent"`
}

type rowKey struct{ image, file, op string }

// row counts what became of one kind of damage to one kind of file.
type row struct {
	Image  string        `json:"image"`
	File   string        `json:"file"`
	Op     string        `json:"op"`
	Counts map[class]int `json:"counts"`
}

// distanceRow counts silent losses in killed databases by how far before the
// end of the live log the damage was.
type distanceRow struct {
	Image string `json:"image"`
	Below string `json:"below"`
	Cases int    `json:"cases"`
	Lost  int    `json:"mostDocumentsLost"`
}

// notable is a case that was neither harmless nor a typed error.
type notable struct {
	Image    string `json:"image"`
	Damage   damage `json:"damage"`
	Distance int64  `json:"distance"`
	outcome
}

// maxNotable bounds the cases of each row in the report.
const maxNotable = 50

// distances are the bounds of the rows of distance.
var distances = []struct {
	below int64
	name  string
}{{1 << 10, "1 KiB"}, {4 << 10, "4 KiB"}, {32 << 10, "32 KiB"}, {1 << 20, "1 MiB"}, {1 << 62, "more"}}

func newReport(c config, images []*image, cases []testCase, outcomes []outcome, took time.Duration) *report {
	r := &report{Seed: c.seed, Seconds: took.Seconds(), Totals: make(map[class]int), rows: make(map[rowKey]int)}
	for _, im := range images {
		r.Images = append(r.Images, imageReport{Name: im.name, Killed: im.killed, Documents: len(im.want.Docs)})
	}
	noted := make(map[rowKey]int)
	tail := make(map[[2]int]*distanceRow)
	for i, one := range cases {
		o, im := outcomes[i], &r.Images[one.image]
		r.Totals[o.Class]++
		key := rowKey{im.Name, one.kind, one.damage.Op}
		at, found := r.rows[key]
		if !found {
			at = len(r.Rows)
			r.rows[key] = at
			r.Rows = append(r.Rows, row{key.image, key.file, key.op, make(map[class]int)})
		}
		r.Rows[at].Counts[o.Class]++
		if o.Class == harmless || o.Class == typed {
			continue
		}
		if noted[key]++; noted[key] <= maxNotable {
			r.Notable = append(r.Notable, notable{im.Name, one.damage, one.distance, o})
		}
		if o.Class != silent {
			continue
		}
		im.Silent++
		if im.Killed && one.distance >= 0 {
			n := slices.IndexFunc(distances, func(d struct {
				below int64
				name  string
			}) bool {
				return one.distance < d.below
			})
			where := [2]int{one.image, n}
			if tail[where] == nil {
				tail[where] = &distanceRow{Image: im.Name, Below: distances[n].name}
			}
			tail[where].Cases++
			tail[where].Lost = max(tail[where].Lost, o.Lost)
		}
	}
	for _, where := range slices.SortedFunc(maps.Keys(tail), func(a, b [2]int) int { return slices.Compare(a[:], b[:]) }) {
		r.Tail = append(r.Tail, *tail[where])
	}
	slices.SortStableFunc(r.Rows, func(a, b row) int {
		return cmp.Or(r.imageOrder(a.Image)-r.imageOrder(b.Image), cmp.Compare(a.File, b.File))
	})
	return r
}

// killed reports whether the image of this name was killed.
func (r *report) killed(name string) bool { return r.Images[r.imageOrder(name)].Killed }

func (r *report) imageOrder(name string) int {
	return slices.IndexFunc(r.Images, func(im imageReport) bool { return im.Name == name })
}

// silentAfterClose counts silent losses in databases that had been closed.
func (r *report) silentAfterClose() (n int) {
	for _, im := range r.Images {
		if !im.Killed {
			n += im.Silent
		}
	}
	return n
}

// failed reports whether there is something that must not be.
func (r *report) failed() bool {
	return r.silentAfterClose()+r.Totals[untyped]+r.Totals[panicked]+r.Totals[hung] > 0
}

// print writes the tables.
func (r *report) print(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprint(t, "database\tfile\tdamage\tcases")
	for _, c := range classes {
		fmt.Fprintf(t, "\t%s", c)
	}
	fmt.Fprintln(t)
	for _, row := range r.Rows {
		r.printRow(t, row.Image+"\t"+row.File+"\t"+row.Op, row.Counts)
	}
	r.printRow(t, "all\t\t", r.Totals)
	t.Flush()

	fmt.Fprintln(w)
	fmt.Fprintln(t, "database\tdocuments\tsilent")
	for _, im := range r.Images {
		fmt.Fprintf(t, "%s\t%d\t%d\n", im.Name, im.Documents, im.Silent)
	}
	t.Flush()

	if len(r.Tail) > 0 {
		fmt.Fprintln(w, "\nSilent after a kill, by the distance of the damage from the end of the live log:")
		fmt.Fprintln(t, "database\tless than\tcases\tmost documents lost")
		for _, d := range r.Tail {
			fmt.Fprintf(t, "%s\t%s\t%d\t%d\n", d.Image, d.Below, d.Cases, d.Lost)
		}
		t.Flush()
	}

	shown := make(map[string]int)
	for _, n := range r.Notable {
		key := n.Image + n.Damage.File + n.Damage.Op + string(n.Class)
		if shown[key]++; shown[key] <= 2 {
			fmt.Fprintf(w, "\n%s: %s, %s, %s at %d: %s\n", n.Class, n.Image, n.Damage.File, n.Damage.Op, n.Damage.At, n.Text)
		}
	}
	fmt.Fprintf(w, "\n%d cases in %.0f s, seed %d; after a close %d silent; anywhere %d untyped, %d panics, %d hangs\n",
		r.cases(), r.Seconds, r.Seed, r.silentAfterClose(), r.Totals[untyped], r.Totals[panicked], r.Totals[hung])
}

func (r *report) cases() (n int) {
	for _, count := range r.Totals {
		n += count
	}
	return n
}

func (r *report) printRow(w io.Writer, head string, counts map[class]int) {
	total := 0
	for _, n := range counts {
		total += n
	}
	fmt.Fprintf(w, "%s\t%d", head, total)
	for _, c := range classes {
		fmt.Fprintf(w, "\t%d", counts[c])
	}
	fmt.Fprintln(w)
}

// save writes the report as JSON.
func (r *report) save(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
