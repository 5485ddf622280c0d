package storagetest

import (
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"regexp"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Repeatable makes a loss of power depend only on what was written before it, on the names of the files and on one number of
// its generator. Pebble's file system draws for files in the order of a map, which is another one each time. A repeatable disk draws
// for each directory entry and each block separately, by its place. So the draws for one file do not depend on whether another file
// is still there: Pebble removes files in the background, before or after a sync of the directory. Files whose names differ only in
// numbers are counted from the newest.
//
// Before each change of a repeatable disk other goroutines may run. So on one processor the background work of an engine is
// interleaved with the operations of the log.
//
// The disks that Crash returns are repeatable, too. Repeatable returns the disk, and must be called before the disk is used.
func (d *Disk) Repeatable() *Disk {
	d.repeatable = true
	return d
}

// pieces returns the disk after a loss of power, as Crash does: every directory entry that was not synced and
// every block is kept with this probability.
func (d *Disk) pieces(percent int, random *rand.Rand) *vfs.MemFS {
	seed := random.Uint64()
	p := pieces{
		synced: d.clone(vfs.CrashCloneCfg{}),
		all:    d.clone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: random}),
		to:     vfs.NewCrashableMem(),
		keeps: func(place string, offset int) bool {
			h := fnv.New64a()
			_, _ = h.Write([]byte(place)) // it never fails
			return rand.New(rand.NewPCG(seed+uint64(offset), h.Sum64())).IntN(100) < percent
		},
	}
	p.directory("", "")
	return p.to
}

// pieces puts a disk together from what was synced and what was not.
type pieces struct {
	synced, all, to *vfs.MemFS
	keeps           func(place string, offset int) bool // offset -1 is the directory entry
}

// numbers are what tells files apart that are of one kind.
var numbers = regexp.MustCompile("[0-9]+")

// places returns the place of each name, which are sorted: its kind, and how many of that kind come after it.
func places(names []string) []string {
	after := make(map[string]int)
	all := make([]string, len(names))
	for i, name := range slices.Backward(names) {
		kind := numbers.ReplaceAllString(name, "#")
		all[i] = fmt.Sprint(kind, " ", after[kind])
		after[kind]++
	}
	return all
}

// directory copies what is below a directory, which is there and has this place.
func (p *pieces) directory(path, within string) {
	names := expect(p.all.List(path))
	slices.Sort(names)
	before, err := p.synced.List(path)
	if err != nil {
		before = nil // the directory itself was not synced
	}
	of := places(names)
	for i, name := range names {
		full := p.all.PathJoin(path, name)
		place := within + "/" + of[i]
		was := slices.Contains(before, name)
		kept := p.keeps(place, -1)
		switch info := expect(p.all.Stat(full)); {
		case !was && !kept:
		case info.IsDir():
			must(p.to.MkdirAll(full, 0o755))
			p.directory(full, place)
		case was && !kept && len(p.read(p.all, full)) < len(p.read(p.synced, full)):
			p.write(full, p.read(p.synced, full)) // another file has taken its name
		case was:
			p.write(full, p.mixed(full, place))
		default:
			p.write(full, p.read(p.all, full))
		}
	}
	dir := expect(p.to.OpenDir(path))
	must(dir.Sync())
	must(dir.Close())
}

// mixed returns the blocks of a file, each as it was synced or as it was.
func (p *pieces) mixed(name, place string) []byte {
	const block = 4096
	data, all := p.read(p.synced, name), p.read(p.all, name)
	if len(all) < len(data) {
		return all
	}
	for i := 0; i < len(all); i += block {
		if !p.keeps(place, i) {
			continue
		}
		piece := all[i:min(i+block, len(all))]
		if grow := i + len(piece) - len(data); grow > 0 {
			data = append(data, make([]byte, grow)...)
		}
		copy(data[i:], piece)
	}
	return data
}

func (p *pieces) read(from *vfs.MemFS, name string) []byte {
	f := expect(from.Open(name))
	data := expect(io.ReadAll(f))
	must(f.Close())
	return data
}

func (p *pieces) write(name string, data []byte) {
	f := expect(p.to.Create(name, vfs.WriteCategoryUnspecified))
	expect(f.Write(data))
	must(f.Sync())
	must(f.Close())
}

// expect and must are for operations of a file system in memory, which do not fail.
func expect[T any](value T, err error) T {
	must(err)
	return value
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
