package transfer

import (
	"cmp"
	"fmt"
	"strings"
)

// MaxCSVColumns is the greatest number of columns of a file. maxMapKeys is the greatest number of
// different keys of one nested object: an object with more keys becomes a column of JSON.
const (
	MaxCSVColumns = 10_000
	maxMapKeys    = 1_000
	maxCSVHeader  = 1 << 20 // bytes of the names of columns
	maxCSVDepth   = 256
)

// csvType is the type of a column.
type csvType uint8

const (
	csvString csvType = iota
	csvNumber
	csvBoolean
	csvJSON
	csvID         // @id
	csvCollection // @collection
	csvMetadata   // @metadata, custom metadata as JSON
)

// csvTypes are the types that a header can name.
var csvTypes = map[string]csvType{"string": csvString, "number": csvNumber, "boolean": csvBoolean, "json": csvJSON}

// csvTypeNames are the suffixes of headers.
var csvTypeNames = [...]string{csvString: "", csvNumber: ":number", csvBoolean: ":boolean", csvJSON: ":json"}

// csvSpecial are the columns that are no fields of the document.
var csvSpecial = map[string]csvType{"@id": csvID, "@collection": csvCollection, "@metadata": csvMetadata, "@metadata:json": csvMetadata}

// csvNode is a field of documents: a column, or an object with fields of its own.
type csvNode struct {
	key      []byte // as a JSON string with a colon; nil for the root
	column   int    // -1 for an object
	children []*csvNode
	named    map[string]*csvNode
}

func newCSVNode(key string) *csvNode {
	return &csvNode{key: append(AppendString(nil, key), ':'), column: -1}
}

// child returns the child with a key, which it makes if there is none.
func (n *csvNode) child(key string) (c *csvNode, made bool) {
	if c = n.named[key]; c != nil {
		return c, false
	}
	if n.named == nil {
		n.named = make(map[string]*csvNode)
	}
	c = newCSVNode(key)
	n.named[key], n.children = c, append(n.children, c)
	return c, true
}

// parseCSVColumn reads the name of a column: a path of keys with dots between them, and a
// type behind a colon. A backslash takes the meaning from the character behind it.
func parseCSVColumn(name string) (path []string, typed bool, t csvType) {
	if t, special := csvSpecial[name]; special {
		return nil, true, t
	}
	if i := strings.LastIndexByte(name, ':'); i >= 0 && !escaped(name, i) {
		if t, typed = csvTypes[name[i+1:]]; typed {
			name = name[:i]
		}
	}
	var key strings.Builder
	for i := 0; i < len(name); i++ {
		switch c := name[i]; {
		case c == '\\' && i+1 < len(name):
			i++
			key.WriteByte(name[i])
		case c == '.':
			path = append(path, key.String())
			key.Reset()
		default:
			key.WriteByte(c)
		}
	}
	return append(path, key.String()), typed, t
}

// escaped reports whether an odd number of backslashes precedes an offset.
func escaped(name string, i int) bool {
	n := 0
	for n < i && name[i-n-1] == '\\' {
		n++
	}
	return n%2 == 1
}

// appendCSVKey appends a key to the name of a column.
func appendCSVKey(dst []byte, key string, first bool) []byte {
	if !first {
		dst = append(dst, '.')
	}
	for i := 0; i < len(key); i++ {
		if c := key[i]; c == '.' || c == ':' || c == '\\' || c == '@' && i == 0 && first {
			dst = append(dst, '\\')
		}
		dst = append(dst, key[i])
	}
	return dst
}

// csvTree builds the tree of the columns of a header, and returns the type of each.
// Columns of the same field, or of a field and a part of it, are refused.
func csvTree(header []string, infer bool, id string) (root *csvNode, types []csvType, inferred []bool, err error) {
	root = &csvNode{column: -1}
	seen := [csvMetadata + 1]bool{}
	for i, name := range header {
		path, typed, t := parseCSVColumn(name)
		if id != "" && name == id {
			path, t = nil, csvID
		}
		types, inferred = append(types, t), append(inferred, infer && !typed)
		if path == nil {
			if seen[t] {
				return nil, nil, nil, invalid("a column is named once", "%q is there twice", cutText(name))
			}
			seen[t] = true
			continue
		}
		if len(path) > maxCSVDepth {
			return nil, nil, nil, invalid(fmt.Sprintf("a column has at most %d keys", maxCSVDepth), "column %d has %d", i+1, len(path))
		}
		at := root
		for j, key := range path {
			next, made := at.child(key)
			if !made && (next.column >= 0 || j == len(path)-1) {
				return nil, nil, nil, invalid("a column names a field that no other column names, nor a part of it", "%q does", cutText(name))
			}
			at = next
		}
		at.column = i
	}
	if id != "" && !seen[csvID] {
		return nil, nil, nil, invalid("the column of the IDs must be there", "there is no %q", cutText(id))
	}
	return root, types, inferred, nil
}

// What documents have in a field.
const (
	hasString = 1 << iota
	hasNumber
	hasBoolean
	hasNull
	hasObject // not empty
	hasJSON   // what only a column of JSON can hold: an array, {}, or a text of a kind
)

// CSVColumns finds the columns that documents need. Call Add with each document, and pass the
// result to [NewCSVWriter]. CSVColumns keeps the names of fields, and no documents.
//
// A field that is always a string, always a number or always a boolean where it exists has a column
// of that type. An object has a column for each of its fields. Any other field has a column of
// JSON: arrays, empty objects, a mix of strings and nulls, values of several types, objects with
// more than 1,000 different keys, and strings with control characters or half a surrogate pair.
type CSVColumns struct {
	root     columnNode
	custom   bool
	columns  int
	keyBytes int
	text     []byte
}

// columnNode is a field while columns are found.
type columnNode struct {
	key      string
	has      uint8
	children []*columnNode
	named    map[string]*columnNode
}

// isJSON reports whether a field needs a column of JSON.
func (n *columnNode) isJSON() bool {
	switch n.has {
	case hasString, hasNumber, hasBoolean, hasNumber | hasNull, hasBoolean | hasNull, hasObject:
		return false
	}
	return true
}

// Add adds the fields of a document.
func (c *CSVColumns) Add(d *Document) error {
	c.custom = c.custom || len(d.Custom) > 2
	if len(d.Body) == 0 || d.Body[0] != '{' {
		return errNoObject(d.Body)
	}
	end, err := c.members(&c.root, d.Body, 0, 0)
	if err == nil && skipSpace(d.Body, end) != len(d.Body) {
		err = errNoObject(d.Body)
	}
	return err
}

func errNoObject(text []byte) *Error {
	return invalid("a document must be a JSON object", "%q", cutText(text))
}

// members looks at the members of an object that begins at i, and returns its end.
func (c *CSVColumns) members(n *columnNode, src []byte, i, depth int) (end int, err error) {
	begin := i
	if i = skipSpace(src, i+1); i < len(src) && src[i] == '}' {
		return i + 1, nil
	}
	for more := true; more; {
		key, value := skipKey(src, i)
		if value < 0 || value >= len(src) {
			return 0, errNoObject(src[begin:])
		}
		child, err := c.child(n, key)
		if err != nil {
			return 0, err
		}
		if child == nil { // n is JSON now
			if i = skipValue(src, begin); i < 0 {
				return 0, errNoObject(src[begin:])
			}
			return i, nil
		}
		if i, err = c.value(child, src, value, depth+1); err != nil {
			return 0, err
		}
		if i, more = afterValue(src, i, '}'); i < 0 {
			return 0, errNoObject(src[begin:])
		}
	}
	return i, nil
}

// child returns the field of an object with a key as it is in JSON. It returns nil if the
// object must be JSON: it has too many keys, or one that cannot name a column.
func (c *CSVColumns) child(n *columnNode, raw []byte) (*columnNode, error) {
	child := n.named[string(raw)]
	if child != nil {
		return child, nil
	}
	quoted := append(append(append(c.text[:0], '"'), raw...), '"')
	c.text = quoted
	key, exact := unquote(quoted)
	usable := exact && isPlainText(key)
	if n == &c.root {
		if !usable {
			return nil, invalid("a column's name must be text without control characters", "the field %s", cutText(quoted))
		}
	} else if !usable || len(n.children) == maxMapKeys {
		c.drop(n)
		n.has |= hasJSON
		return nil, nil
	}
	written := AppendString(nil, key)
	canonical := string(written[1 : len(written)-1])
	if child = n.named[canonical]; child == nil { // else it was there with other escapes
		child = &columnNode{key: key}
		n.children = append(n.children, child)
		if c.columns++; c.columns > 2*MaxCSVColumns || len(n.children) > MaxCSVColumns {
			return nil, invalid(fmt.Sprintf("a CSV file has at most %d columns", MaxCSVColumns), "the documents have more fields")
		}
	}
	if n.named == nil {
		n.named = make(map[string]*columnNode)
	}
	if c.keyBytes += len(raw); c.keyBytes > 2*maxCSVHeader {
		return nil, errCSVHeader
	}
	n.named[canonical], n.named[string(raw)] = child, child
	return child, nil
}

var errCSVHeader = invalid(fmt.Sprintf("the header of a CSV file has at most %d bytes", maxCSVHeader), "the names of the fields are longer")

// drop forgets the fields of an object that has become JSON.
func (c *CSVColumns) drop(n *columnNode) {
	for name := range n.named {
		c.keyBytes -= len(name)
	}
	for _, child := range n.children {
		c.columns--
		c.drop(child)
	}
	n.children, n.named = nil, nil
}

// value looks at a value that begins at i, and returns its end.
func (c *CSVColumns) value(n *columnNode, src []byte, i, depth int) (end int, err error) {
	begin := i
	switch src[i] {
	case '{':
		next := skipSpace(src, i+1)
		switch {
		case next < len(src) && src[next] == '}', depth >= maxCSVDepth:
			n.has |= hasJSON
		default:
			n.has |= hasObject
		}
		if !n.isJSON() {
			return c.members(n, src, i, depth)
		}
		end = skipValue(src, i)
	case '[':
		n.has |= hasJSON
		end = skipValue(src, i)
	case '"':
		if end = skipString(src, i); end > 0 {
			n.has |= kindOfText(src[i:end])
		}
	default:
		end = skipValue(src, i)
		switch src[i] {
		case 't', 'f':
			n.has |= hasBoolean
		case 'n':
			n.has |= hasNull
		default:
			n.has |= hasNumber
		}
	}
	if end < 0 {
		return 0, errNoObject(src[begin:])
	}
	if n.children != nil && n.isJSON() {
		c.drop(n)
	}
	return end, nil
}

// kindOfText returns hasString, or hasJSON for a string that a cell cannot hold as it is.
func kindOfText(raw []byte) uint8 {
	for _, b := range raw {
		if b == '\\' || b == 0x7f {
			if text, exact := unquote(raw); !exact || !isPlainText(text) {
				return hasJSON
			}
			break
		}
	}
	return hasString
}

// Field is a field of documents that has a column.
type Field struct {
	Path []string // the keys from the document on
	Type string   // "string", "number", "boolean" or "json"
}

// Fields returns the fields in the order of their columns.
func (c *CSVColumns) Fields() (fields []Field, err error) {
	if _, _, _, err := c.nodes(); err != nil {
		return nil, err
	}
	var walk func(from *columnNode, path []string)
	walk = func(from *columnNode, path []string) {
		for _, child := range from.children {
			path := append(path[:len(path):len(path)], child.key)
			if child.has == hasObject {
				walk(child, path)
				continue
			}
			name := strings.TrimPrefix(csvTypeNames[child.csvType()], ":")
			fields = append(fields, Field{path, cmp.Or(name, "string")})
		}
	}
	walk(&c.root, nil)
	return fields, nil
}

// csvType returns the type of the column of a field that is no object.
func (n *columnNode) csvType() csvType {
	switch {
	case n.isJSON():
		return csvJSON
	case n.has&hasString != 0:
		return csvString
	case n.has&hasNumber != 0:
		return csvNumber
	}
	return csvBoolean
}

// nodes returns the tree of the columns, and the header.
func (c *CSVColumns) nodes() (root *csvNode, header []string, types []csvType, err error) {
	header, types = []string{"@id", "@collection"}, []csvType{csvID, csvCollection}
	if c.custom {
		header, types = append(header, "@metadata:json"), append(types, csvMetadata)
	}
	root = &csvNode{column: -1}
	size := 0
	var walk func(from *columnNode, to *csvNode, path []byte)
	walk = func(from *columnNode, to *csvNode, path []byte) {
		for _, child := range from.children {
			node := newCSVNode(child.key)
			to.children = append(to.children, node)
			if to.named == nil {
				to.named = make(map[string]*csvNode)
			}
			to.named[string(node.key[1:len(node.key)-2])] = node
			name := appendCSVKey(path[:len(path):len(path)], child.key, from == &c.root)
			if child.has == hasObject {
				walk(child, node, name)
				continue
			}
			t := child.csvType()
			node.column = len(header)
			header, types = append(header, string(name)+csvTypeNames[t]), append(types, t)
			size += len(name)
		}
	}
	walk(&c.root, root, nil)
	if len(header) > MaxCSVColumns {
		return nil, nil, nil, invalid(fmt.Sprintf("a CSV file has at most %d columns", MaxCSVColumns), "the documents need %d", len(header))
	}
	if size > maxCSVHeader {
		return nil, nil, nil, errCSVHeader
	}
	return root, header, types, nil
}
