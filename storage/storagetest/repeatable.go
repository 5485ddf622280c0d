package storagetest

import (
	"io"
	"math/rand/v2"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Repeatable makes losses of power depend on nothing but what was written before them, the names of files and the numbers of
// their generator: Pebble's file system draws for files in the order of a map, another one each time. It is for
// programs in which nothing else writes meanwhile. The disks that Crash returns are repeatable, too. It returns the disk.
func (d *Disk) Repeatable() *Disk {
	d.repeatable = true
	return d
}

// pieces returns the disk after a loss of power, as Crash does: every directory entry that was not synced and
// every block is kept with this probability, in the order of names and offsets.
func (d *Disk) pieces(percent int, random *rand.Rand) *vfs.MemFS {
	p := pieces{
		synced: d.clone(vfs.CrashCloneCfg{}),
		all:    d.clone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: random}),
		to:     vfs.NewCrashableMem(),
		keeps:  func() bool { return random.IntN(100) < percent },
	}
	p.directory("")
	return p.to
}

// pieces puts a disk together from what was synced and what was not.
type pieces struct {
	synced, all, to *vfs.MemFS
	keeps           func() bool
}

// directory copies what is below a directory, which is there.
func (p *pieces) directory(path string) {
	names := expect(p.all.List(path))
	slices.Sort(names)
	before, err := p.synced.List(path)
	if err != nil {
		before = nil // the directory itself was not synced
	}
	for _, name := range names {
		full := p.all.PathJoin(path, name)
		was := slices.Contains(before, name)
		kept := p.keeps()
		switch info := expect(p.all.Stat(full)); {
		case !was && !kept:
		case info.IsDir():
			must(p.to.MkdirAll(full, 0o755))
			p.directory(full)
		case was && !kept && len(p.read(p.all, full)) < len(p.read(p.synced, full)):
			p.write(full, p.read(p.synced, full)) // another file has taken its name
		case was:
			p.write(full, p.mixed(full))
		default:
			p.write(full, p.read(p.all, full))
		}
	}
	dir := expect(p.to.OpenDir(path))
	must(dir.Sync())
	must(dir.Close())
}

// mixed returns the blocks of a file, each as it was synced or as it was.
func (p *pieces) mixed(name string) []byte {
	const block = 4096
	data, all := p.read(p.synced, name), p.read(p.all, name)
	if len(all) < len(data) {
		return all
	}
	for i := 0; i < len(all); i += block {
		if !p.keeps() {
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
