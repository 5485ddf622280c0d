package jsonpath

import (
	"cmp"
	"slices"
)

// Extractor finds the values of many paths in one pass over a body. It is
// immutable and safe for concurrent use.
type Extractor struct {
	root node
}

// node is a node of the trie of all paths: paths share the nodes of their common
// prefix.
type node struct {
	names   []string         // of member steps
	members []*node          // parallel to names
	byName  map[string]*node // of members; nil if there are few
	indexes []indexed        // of index steps, in rising order
	every   *node            // of a [] step, or nil
	paths   []int            // indexes of the paths that end here
}

// indexed is the child of a node by an index step.
type indexed struct {
	index int
	node  *node
}

// manyNames is the number of members from which a map is faster than comparing
// names one by one.
const manyNames = 8

// state is a node that the current value has reached; there are several if paths
// with and without [] overlap. A loose state came from going through an array for
// the sake of a member step, so only member steps may follow.
type state struct {
	node    *node
	loose   bool
	through bool // the path went through all elements of an array
}

// NewExtractor returns an Extractor of the paths. Extract reports a path by its
// index. A path may occur twice.
func NewExtractor(paths []Path) *Extractor {
	x := new(Extractor)
	for i, p := range paths {
		n := &x.root
		for _, s := range p.steps {
			n = n.child(s)
		}
		n.paths = append(n.paths, i)
	}
	return x
}

// child returns the child of n by a step, which it makes if there is none.
func (n *node) child(s Step) *node {
	switch s.Kind {
	case Member:
		if child := n.member([]byte(s.Name)); child != nil {
			return child
		}
		child := new(node)
		n.names, n.members = append(n.names, s.Name), append(n.members, child)
		if len(n.names) >= manyNames {
			n.byName = make(map[string]*node, len(n.names))
			for i, name := range n.names {
				n.byName[name] = n.members[i]
			}
		}
		return child
	case Index:
		i, found := n.findIndex(s.Index)
		if !found {
			n.indexes = slices.Insert(n.indexes, i, indexed{s.Index, new(node)})
		}
		return n.indexes[i].node
	}
	if n.every == nil {
		n.every = new(node)
	}
	return n.every
}

// findIndex returns the position of an index, or where to insert it.
func (n *node) findIndex(index int) (i int, found bool) {
	return slices.BinarySearchFunc(n.indexes, index, func(e indexed, index int) int { return cmp.Compare(e.index, index) })
}

// member returns the child by a member step, or nil.
func (n *node) member(name []byte) *node {
	if n.byName != nil {
		return n.byName[string(name)]
	}
	for i, s := range n.names {
		if s == string(name) {
			return n.members[i]
		}
	}
	return nil
}

// Extract calls fn with every value of every path, and with the index of the
// path. Through reports that the path went through all elements of an array, by
// [] or loosely, however few they are. Extract is loose, as EachLoose is. The
// values of one path come in document order; those of different paths are
// interleaved. An array at the end of a path is one value, which the caller can
// split with Elements. The values are raw and share memory with the body. Extract
// allocates nothing unless a value is reached in more than eight ways at once, by
// paths with and without [].
func (x *Extractor) Extract(body []byte, fn func(path int, raw []byte, through bool)) {
	x.ExtractPaced(body, fn, nil)
}

// stepsPerPoll is the number of members or elements of one value between two
// calls of spend.
const stepsPerPoll = 1024

// ExtractPaced is Extract, but regularly calls spend with the number of steps that
// it has taken, and stops when spend returns false. A step is one member or
// element for one state. There are at most 1,024 members or elements between two
// calls. After spend has returned false, the values passed to fn have no meaning.
// A nil spend is not called.
func (x *Extractor) ExtractPaced(body []byte, fn func(path int, raw []byte, through bool), spend func(steps int) bool) {
	if len(body) == 0 {
		return
	}
	states := [1]state{{node: &x.root}}
	if len(x.root.paths) == 0 && body[0] == '{' { // may stop before the end of the body
		visitObject(body, 0, states[:], true, fn, spend)
		return
	}
	visit(body, 0, states[:], fn, spend)
}

// visit visits the value at i, which all states have reached, and returns the
// offset after it. It passes fn as a parameter: in a struct beside body, fn would
// escape to the heap.
func visit(body []byte, i int, states []state, fn func(path int, raw []byte, through bool), spend func(steps int) bool) (end int) {
	switch {
	case i >= len(body):
		return len(body)
	case body[i] == '{' && wantsMembers(states):
		end = visitObject(body, i, states, false, fn, spend)
	case body[i] == '[' && wantsElements(states):
		end = visitArray(body, i, states, fn, spend)
	default:
		end = Skip(body, i)
	}
	for _, s := range states {
		if s.loose {
			continue // the array around it has been reported
		}
		for _, path := range s.node.paths {
			fn(path, body[i:end], s.through)
		}
	}
	return end
}

// wantsMembers reports whether a path goes into an object.
func wantsMembers(states []state) bool {
	for _, s := range states {
		if len(s.node.names) > 0 {
			return true
		}
	}
	return false
}

// wantsElements reports whether a path goes into an array, strictly or loosely.
func wantsElements(states []state) bool {
	for _, s := range states {
		if len(s.node.names) > 0 || !s.loose && (s.node.every != nil || len(s.node.indexes) > 0) {
			return true
		}
	}
	return false
}

// visitObject visits the object at i. Once it has seen all members that paths need
// it skips the rest of the object. If last is set no path needs anything after
// the object either, and it stops without finding its end.
func visitObject(body []byte, i int, states []state, last bool, fn func(path int, raw []byte, through bool), spend func(steps int) bool) (end int) {
	wanted := 0
	for _, s := range states {
		wanted += len(s.node.names)
	}
	var buf [8]state
	if len(states) > len(buf) && spend != nil && !spend(len(states)) {
		return len(body)
	}
	steps := 0
	for i++; i < len(body) && body[i] != '}'; i++ {
		if steps++; steps%stepsPerPoll == 0 && spend != nil && !spend(stepsPerPoll*len(states)) {
			return len(body)
		}
		colon, escapes := keyEnd(body, i)
		name := body[min(i+1, colon-1):max(i, colon-1)]
		if escapes {
			var text [64]byte
			name = AppendUnquoted(text[:0], body[i:colon])
		}
		next := buf[:0]
		for _, s := range states {
			if child := s.node.member(name); child != nil {
				next = append(next, state{node: child, through: s.through})
			}
		}
		if len(next) == 0 {
			i = Skip(body, colon+1)
		} else {
			i = visit(body, colon+1, next, fn, spend)
			if wanted -= len(next); wanted == 0 {
				if last {
					return i
				}
				return closing(body, i)
			}
		}
		if i < len(body) && body[i] == '}' {
			break
		}
	}
	return min(i+1, len(body))
}

// visitArray visits the array at i. Each element gets the states of [] steps, of
// its index, and of member steps, which go through the array loosely.
func visitArray(body []byte, i int, states []state, fn func(path int, raw []byte, through bool), spend func(steps int) bool) (end int) {
	var buf [8]state
	if len(states) > len(buf) && spend != nil && !spend(len(states)) {
		return len(body)
	}
	i++
	for index := 0; i < len(body) && body[i] != ']'; index++ {
		if spend != nil && (index+1)%stepsPerPoll == 0 && !spend(stepsPerPoll*len(states)) {
			return len(body)
		}
		next := buf[:0]
		for _, s := range states {
			if len(s.node.names) > 0 {
				next = append(next, state{node: s.node, loose: true, through: true})
			}
			if s.loose {
				continue
			}
			if s.node.every != nil {
				next = append(next, state{node: s.node.every, through: true})
			}
			if len(s.node.indexes) > 0 {
				if at, found := s.node.findIndex(index); found {
					next = append(next, state{node: s.node.indexes[at].node, through: s.through})
				}
			}
		}
		if i = visit(body, i, next, fn, spend); i >= len(body) || body[i] != ',' {
			break // at the closing bracket
		}
		i++
	}
	return min(i+1, len(body))
}
