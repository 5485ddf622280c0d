package docs

import "unsafe"

// docAlloc is a size-class allocation: a Document and, behind it, room for its ID
// and its record, in one piece of memory. The sizes are those in which Go's
// allocator hands out memory, so that a document takes no more of it than separate
// allocations would.
//
// Nothing is shared between allocations: a caller that keeps a document, or only
// its body, keeps the memory of that document and of no other.
type docAlloc[R any] struct {
	document
	room R // an array of bytes
}

// document makes the field in which docAlloc embeds a Document unexported.
type document = Document

const (
	documentBytes = int(unsafe.Sizeof(Document{}))
	typeBytes     = 8 // the allocator's own, in front of what is larger than 512 bytes and holds pointers

	// maxDocAlloc is the most room that an allocation has beside the Document.
	// Larger documents get their own memory for ID and record: clearing the room
	// first would cost more than the one allocation saves.
	maxDocAlloc = 2048 - typeBytes - documentBytes
)

// allocDocument returns a zero Document and n bytes of room, at most maxDocAlloc.
func allocDocument(n int) (*Document, []byte) {
	switch {
	case n <= 256-documentBytes:
		return allocOf[[256 - documentBytes]byte](n)
	case n <= 320-documentBytes:
		return allocOf[[320 - documentBytes]byte](n)
	case n <= 416-documentBytes:
		return allocOf[[416 - documentBytes]byte](n)
	case n <= 512-documentBytes:
		return allocOf[[512 - documentBytes]byte](n)
	case n <= 640-typeBytes-documentBytes:
		return allocOf[[640 - typeBytes - documentBytes]byte](n)
	case n <= 768-typeBytes-documentBytes:
		return allocOf[[768 - typeBytes - documentBytes]byte](n)
	case n <= 896-typeBytes-documentBytes:
		return allocOf[[896 - typeBytes - documentBytes]byte](n)
	case n <= 1024-typeBytes-documentBytes:
		return allocOf[[1024 - typeBytes - documentBytes]byte](n)
	case n <= 1280-typeBytes-documentBytes:
		return allocOf[[1280 - typeBytes - documentBytes]byte](n)
	case n <= 1536-typeBytes-documentBytes:
		return allocOf[[1536 - typeBytes - documentBytes]byte](n)
	default:
		return allocOf[[maxDocAlloc]byte](n)
	}
}

func allocOf[R any](n int) (*Document, []byte) {
	p := new(docAlloc[R])
	return &p.document, unsafe.Slice((*byte)(unsafe.Pointer(&p.room)), n)
}

// textOf returns b as a string without a copy. b must not be changed from then on.
func textOf(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
