package sorter

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/jaydb/jay/internal/keybytes"
)

// How a Buffer is sorted
//
// Entries are radix-sorted by the bytes in which their prefixes differ, from the last byte to the
// first. The sort is stable, and entries are added in the order of documents, so entries with equal
// values are often in order afterwards. If they are not, the next 8 bytes of their keys temporarily
// become the prefix.

const (
	// fewRefs are sorted by comparing keys.
	fewRefs = 64

	// maxDepth is the number of bytes of a key that are radix-sorted; the rest is compared.
	maxDepth = 128
)

// Sort sorts what is in the buffer. Goroutines that fill buffers call it at their end, so
// that Split need not do it for all.
func (b *Buffer) Sort() {
	if !b.sorted {
		b.sortFrom(b.refs, make([]ref, len(b.refs)), 0)
	}
	b.sorted = true
}

// sortFrom sorts refs whose keys agree before depth, and whose prefixes are the bytes at depth.
// scratch is as long as refs.
func (b *Buffer) sortFrom(refs, scratch []ref, depth int) {
	if slices.IsSortedFunc(refs, b.compare) {
		return
	}
	if len(refs) <= fewRefs || depth >= maxDepth {
		slices.SortFunc(refs, b.compare)
		return
	}
	radixSort(refs, scratch)
	for lo := 0; lo < len(refs); {
		hi := lo + 1
		for hi < len(refs) && refs[hi].prefix == refs[lo].prefix {
			hi++
		}
		if equal := refs[lo:hi]; len(equal) > 1 {
			b.sortEqual(equal, scratch[lo:hi], depth+8)
		}
		lo = hi
	}
}

// sortEqual sorts refs whose keys agree before depth, by the bytes from depth on. It leaves their
// prefixes unchanged.
func (b *Buffer) sortEqual(refs, scratch []ref, depth int) {
	if len(refs) <= fewRefs || depth >= maxDepth {
		b.sortFrom(refs, scratch, depth)
		return
	}
	prefix := refs[0].prefix
	for i := range refs {
		key := b.keyOf(&refs[i])
		refs[i].prefix = keybytes.NumberAt(key, depth)
	}
	b.sortFrom(refs, scratch, depth)
	for i := range refs {
		refs[i].prefix = prefix
	}
}

func (b *Buffer) compare(x, y ref) int {
	if x.prefix != y.prefix {
		return cmp.Compare(x.prefix, y.prefix)
	}
	return bytes.Compare(b.keyOf(&x), b.keyOf(&y))
}

// radixSort sorts refs by their prefixes. It is stable.
func radixSort(refs, scratch []ref) {
	differ := uint64(0)
	for i := range refs {
		differ |= refs[i].prefix ^ refs[0].prefix
	}
	from, to := refs, scratch
	for shift := 0; shift < 64; shift += 8 {
		if differ>>shift&0xff == 0 {
			continue
		}
		var next [256]int // first the number of refs with a byte, then where the next of them goes
		for i := range from {
			next[byte(from[i].prefix>>shift)]++
		}
		at := 0
		for i, n := range next {
			next[i] = at
			at += n
		}
		for i := range from {
			place := &next[byte(from[i].prefix>>shift)]
			to[*place] = from[i]
			*place++
		}
		from, to = to, from
	}
	if &from[0] != &refs[0] {
		copy(refs, from)
	}
}
