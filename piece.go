package jay

import "unsafe"

// A document that is read is one allocation: the Document and, behind it, its ID
// and its record. The types below are of the sizes in which Go's allocator
// hands out memory, so that a document takes no more of it than in parts.
//
// Nothing in them is shared: a document that is kept, or only its body, keeps its
// own memory and no other document's.
type (
	piece256 struct {
		document
		room [256 - documentBytes]byte
	}
	piece320 struct {
		document
		room [320 - documentBytes]byte
	}
	piece416 struct {
		document
		room [416 - documentBytes]byte
	}
	piece512 struct {
		document
		room [512 - documentBytes]byte
	}
	piece640 struct {
		document
		room [640 - typeBytes - documentBytes]byte
	}
	piece768 struct {
		document
		room [768 - typeBytes - documentBytes]byte
	}
	piece896 struct {
		document
		room [896 - typeBytes - documentBytes]byte
	}
	piece1024 struct {
		document
		room [1024 - typeBytes - documentBytes]byte
	}
	piece1280 struct {
		document
		room [1280 - typeBytes - documentBytes]byte
	}
	piece1536 struct {
		document
		room [1536 - typeBytes - documentBytes]byte
	}
	piece2048 struct {
		document
		room [2048 - typeBytes - documentBytes]byte
	}
)

// document is embedded under a name that gives no room away.
type document = Document

const (
	documentBytes = unsafe.Sizeof(Document{})
	typeBytes     = 8 // the allocator's own, in front of what is larger than 512 bytes and holds pointers

	// maxPiece is the most bytes that a document can have beside it. Larger ones
	// are allocated by themselves: to clear the room first would cost more than
	// it spares.
	maxPiece = len(piece2048{}.room)
)

// newPiece returns a zero Document and n bytes of room, at most maxPiece.
func newPiece(n int) (*Document, []byte) {
	switch {
	case n <= len(piece256{}.room):
		p := new(piece256)
		return &p.document, p.room[:n]
	case n <= len(piece320{}.room):
		p := new(piece320)
		return &p.document, p.room[:n]
	case n <= len(piece416{}.room):
		p := new(piece416)
		return &p.document, p.room[:n]
	case n <= len(piece512{}.room):
		p := new(piece512)
		return &p.document, p.room[:n]
	case n <= len(piece640{}.room):
		p := new(piece640)
		return &p.document, p.room[:n]
	case n <= len(piece768{}.room):
		p := new(piece768)
		return &p.document, p.room[:n]
	case n <= len(piece896{}.room):
		p := new(piece896)
		return &p.document, p.room[:n]
	case n <= len(piece1024{}.room):
		p := new(piece1024)
		return &p.document, p.room[:n]
	case n <= len(piece1280{}.room):
		p := new(piece1280)
		return &p.document, p.room[:n]
	case n <= len(piece1536{}.room):
		p := new(piece1536)
		return &p.document, p.room[:n]
	default:
		p := new(piece2048)
		return &p.document, p.room[:n]
	}
}

// textOf returns b as a string without a copy. Nobody may change b from then on.
func textOf(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
