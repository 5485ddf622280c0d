package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// damage is what is done to one file.
type damage struct {
	File   string `json:"file"`
	Op     string `json:"op"`
	At     int64  `json:"at,omitempty"`
	Len    int64  `json:"len,omitempty"`
	Mask   byte   `json:"mask,omitempty"`
	Source string `json:"source,omitempty"` // path of the copy that takes its place
}

// What can be done to a file.
const (
	opBit    = "bit flipped"
	opByte   = "byte flipped"
	opDelete = "deleted"
	opEmpty  = "emptied"
	opCut    = "cut"
	opZero   = "zeroed"
	opSwap   = "older copy"
)

// apply damages the file in dir.
func (d damage) apply(dir string) error {
	path := filepath.Join(dir, d.File)
	if d.Op == opDelete {
		return os.Remove(path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	switch d.Op {
	case opBit, opByte:
		text[d.At] ^= d.Mask
	case opEmpty:
		text = nil
	case opCut:
		text = text[:d.At]
	case opZero:
		clear(text[d.At : d.At+d.Len])
	case opSwap:
		if text, err = os.ReadFile(d.Source); err != nil {
			return err
		}
	default:
		return fmt.Errorf("unknown operation %q", d.Op)
	}
	// A new file: that of the image may be linked.
	if err := os.Remove(path); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}

// testCase is one damage to one image.
type testCase struct {
	image    int
	kind     string // of the file
	distance int64  // from the end of the live log; -1 elsewhere
	damage   damage
}

// kindOf sorts the files of a database by their names.
func kindOf(name string) string {
	switch {
	case strings.HasSuffix(name, ".sst"):
		return "table"
	case strings.HasSuffix(name, ".log"):
		return "log"
	case strings.HasPrefix(name, "MANIFEST"):
		return "manifest"
	case strings.HasPrefix(name, "OPTIONS"):
		return "options"
	case strings.HasPrefix(name, "marker."):
		return "marker"
	}
	return name
}

// small is the size up to which every byte of the newest file of a kind is
// flipped that is neither a table nor a log.
const small = 64 << 10

// casesOf lists what is done to an image.
func casesOf(number int, im *image, c config, random *rand.Rand) ([]testCase, error) {
	files, err := os.ReadDir(im.dir)
	if err != nil {
		return nil, err
	}
	newest := make(map[string]string) // file of each kind: the live one
	texts := make(map[string][]byte)
	for _, f := range files {
		if texts[f.Name()], err = os.ReadFile(filepath.Join(im.dir, f.Name())); err != nil {
			return nil, err
		}
		kind := kindOf(f.Name())
		newest[kind] = max(newest[kind], f.Name())
	}

	var cases []testCase
	var large, tables []damage // what random bytes are taken from, by ranges
	for _, f := range files {
		name, text := f.Name(), texts[f.Name()]
		kind, size := kindOf(name), int64(len(text))
		live := int64(len(bytes.TrimRight(text, "\x00")))
		add := func(d damage) {
			d.File = name
			distance := int64(-1)
			if name == newest["log"] && (d.Op == opBit || d.Op == opByte || d.Op == opCut || d.Op == opZero) {
				distance = max(0, live-d.At)
			}
			cases = append(cases, testCase{number, kind, distance, d})
		}
		flip := func(at int64) { add(damage{Op: opBit, At: at, Mask: 1 << random.IntN(8)}) }

		switch {
		case name == newest["log"]:
			for at := max(0, live-c.tail); at < live; at++ {
				flip(at)
				if at%8 == 0 {
					add(damage{Op: opByte, At: at, Mask: 0xff})
				}
			}
			large = append(large, damage{File: name, Len: max(0, live-c.tail)})
		case kind == "table":
			tables = append(tables, damage{File: name, Len: size})
		case name != newest[kind] || size > small:
			large = append(large, damage{File: name, Len: size})
		case kind == "options": // thousands of bytes that nothing depends on: each in one image
			for at := int64(number); at < size; at += int64(c.images) {
				flip(at)
			}
		default:
			for at := range size {
				flip(at)
				add(damage{Op: opByte, At: at, Mask: 0xff})
			}
		}

		add(damage{Op: opDelete})
		if size > 0 {
			add(damage{Op: opEmpty})
			for _, at := range compact(1, size/2, size-size/10, size-512, size-1, live-1) {
				if 0 < at && at < size {
					add(damage{Op: opCut, At: at})
				}
			}
			n := min(size, 512)
			for _, at := range compact(0, size/2, size-n, live-n) {
				if 0 <= at && at+n <= size && !bytes.Equal(text[at:at+n], make([]byte, n)) {
					add(damage{Op: opZero, At: at, Len: n})
				}
			}
			add(damage{Op: opZero, Len: size})
		}
		for _, older := range olderCopies(im, name, text) {
			add(damage{Op: opSwap, Source: older})
		}
	}

	for i := range c.random { // half of them in tables, each byte with the same chance
		ranges := large
		if i%2 == 0 || len(large) == 0 {
			ranges = tables
		}
		d, found := pick(ranges, random)
		if !found {
			continue
		}
		distance := int64(-1)
		if d.File == newest["log"] {
			distance = max(0, int64(len(bytes.TrimRight(texts[d.File], "\x00")))-d.At)
		}
		cases = append(cases, testCase{number, kindOf(d.File), distance, d})
	}
	return cases, nil
}

// pick chooses a bit in the ranges.
func pick(ranges []damage, random *rand.Rand) (d damage, found bool) {
	total := int64(0)
	for _, d := range ranges {
		total += d.Len
	}
	if total == 0 {
		return d, false
	}
	at := random.Int64N(total)
	for _, d := range ranges {
		if at < d.Len {
			return damage{File: d.File, Op: opBit, At: at, Mask: 1 << random.IntN(8)}, true
		}
		at -= d.Len
	}
	return d, false
}

// compact sorts offsets and drops repetitions.
func compact(offsets ...int64) []int64 {
	slices.Sort(offsets)
	return slices.Compact(offsets)
}

// olderCopies returns the earlier states of a file that differ from it, and
// the newest earlier file of its kind under another name.
func olderCopies(im *image, name string, text []byte) []string {
	var same []string
	other, otherName := "", ""
	for _, dir := range im.older {
		files, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, f := range files {
			path := filepath.Join(dir, f.Name())
			copied, err := os.ReadFile(path)
			if err != nil || bytes.Equal(copied, text) {
				continue
			}
			switch kind := kindOf(name); {
			case f.Name() == name:
				same = append(same, path)
			case kindOf(f.Name()) == kind && f.Name() < name && f.Name() >= otherName:
				other, otherName = path, f.Name()
			}
		}
	}
	if len(same) > 3 {
		same = same[len(same)-3:]
	}
	if other != "" {
		same = append(same, other)
	}
	return same
}
