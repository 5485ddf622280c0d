package catalog

import (
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/codec"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/query"
)

// Tagged returns the indexes that the tags of the fields of t declare, in the order of the fields and
// in their canonical form: see Collection.EnsureIndexes of package jay. beside are the JSON names of the
// fields that are kept beside the body. An invalid tag is ErrIndex, and so is one that declares an index on a field
// which is not in the body.
func Tagged(t reflect.Type, collection string, beside []string) ([]index.Index, error) {
	found := tagged{byName: make(map[string]int), words: make(map[int]*worded), beside: beside}
	err := found.walk(t, nil, nil)
	if err == nil {
		err = found.checkPairs()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t, err)
	}
	for i, ix := range found.indexes {
		if ix.Name == "" { // the same for times as for text, so that the one replaces the other
			ix.Name = DefaultName(found.names[i], "")
		}
		if words := found.words[i]; words != nil {
			ix.Options = words.options()
		}
		var err error
		if found.indexes[i], err = Canonical(ix, collection); err != nil {
			return nil, fmt.Errorf("%s: %w", t, err)
		}
	}
	return found.indexes, nil
}

// tagged gathers indexes from tags.
type tagged struct {
	indexes []index.Index
	names   [][]string      // parallel to indexes: their fields, those of time.Time without "as date"
	byName  map[string]int  // position in indexes of those with a name
	words   map[int]*worded // by position in indexes: those of words
	beside  []string        // JSON names of fields that are kept beside the body
	pairs   []*pair         // of latitudes and longitudes
	lists   int             // how many lists the fields are in
}

// walk collects the tags of a struct whose JSON is at path.
func (t *tagged) walk(typ reflect.Type, path []byte, within []reflect.Type) error {
	for _, seen := range within {
		if seen == typ {
			return nil // a recursive type has no end
		}
	}
	within = append(within, typ)
	for i := range typ.NumField() {
		f := typ.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || !f.IsExported() && !f.Anonymous {
			if declares(f.Tag.Get("jay")) {
				return fmt.Errorf("%w: field %s: %q in its jay tag: the JSON of a document lacks the field, so an index on it has no entries", errs.ErrIndex, f.Name, f.Tag.Get("jay"))
			}
			continue
		}
		if codec.IsMetaTag(f.Tag.Get("jay")) && len(within) == 1 {
			continue
		}
		at := path
		if !f.Anonymous || name != "" {
			if name == "" {
				name = f.Name
			}
			at = jsonpath.AppendMember(path[:len(path):len(path)], name)
		}
		if declares(f.Tag.Get("jay")) && slices.ContainsFunc(t.beside, func(member string) bool { return string(jsonpath.AppendMember(nil, member)) == string(at) }) {
			return fmt.Errorf("%w: field %s: %q in its jay tag: the ID and the version are kept beside the body, where no index is needed", errs.ErrIndex, f.Name, f.Tag.Get("jay"))
		}
		if err := t.add(f, string(at)); err != nil {
			return err
		}
		if inner := structOf(f.Type); inner != nil {
			listed := isList(f.Type)
			t.lists += listed
			if err := t.walk(inner, at, within); err != nil {
				return err
			}
			t.lists -= listed
		}
	}
	return nil
}

// declaring are the words that declare an index, and which may have a name.
var declaring = []string{"index", "unique", "text", "place", "latitude", "longitude"}

// declares reports whether a jay tag has a word for an index.
func declares(tag string) bool {
	for kind := range words(tag) {
		if slices.Contains(declaring, kind) {
			return true
		}
	}
	return false
}

// words returns the words of a jay tag, each with the item of the tag that it begins. The item of "where" goes on to the
// end of the tag, as a condition may have commas.
func words(tag string) iter.Seq2[string, string] {
	return func(yield func(word, item string) bool) {
		for rest, more := tag, true; more; {
			item := rest
			if wordOf(item) == "where" {
				more = false
			} else {
				item, rest, more = strings.Cut(rest, ",")
			}
			if !yield(wordOf(item), item) {
				return
			}
		}
	}
}

// wordOf returns the text before the first comma or "=".
func wordOf(text string) string {
	if end := strings.IndexAny(text, ",="); end >= 0 {
		text = text[:end]
	}
	return strings.TrimSpace(text)
}

// structOf returns the struct that a field holds, points to or lists, or nil.
func structOf(t reflect.Type) reflect.Type {
	if t = codec.Element(t, nil); t.Kind() != reflect.Struct {
		return nil
	}
	return t
}

// add reads the tag of one field.
func (t *tagged) add(f reflect.StructField, path string) error {
	tag := f.Tag.Get("jay")
	if tag == "" || tag == "id" || tag == "version" || codec.IsMetaTag(tag) {
		return nil
	}
	last, plain := -1, -1 // plain is an index on the field only, in its own order
	for kind, item := range words(tag) {
		_, name, named := strings.Cut(item, "=")
		if named && slices.Contains(declaring, kind) {
			if name = strings.TrimSpace(name); !isTagName(name) {
				return fmt.Errorf("%w: field %s: %q in its jay tag: a name has letters, digits, _, -, . and /, and a comma comes before the next word", errs.ErrIndex, f.Name, item)
			}
		}
		switch {
		case kind == "text":
			if codec.IsTimeType(f.Type) {
				return fmt.Errorf("%w: field %s: %q in its jay tag: a time.Time has no words", errs.ErrIndex, f.Name, item)
			}
			last, plain = t.putText(name, path), -1
		case kind == "place" || kind == "latitude" || kind == "longitude":
			if err := t.putPlace(f, kind, name, path); err != nil {
				return err
			}
			last, plain = -1, -1
		case (kind == "analyzer" || kind == "weight") && named && last >= 0 && t.words[last] != nil:
			t.words[last].set(kind, strings.TrimSpace(name))
		case kind == "desc" && !named && last >= 0:
			for _, fields := range [][]string{t.indexes[last].Fields, t.names[last]} {
				fields[len(fields)-1] = "-" + fields[len(fields)-1]
			}
			if last == plain {
				plain = -1
			}
		case kind == "utc" && !named && last >= 0:
			if codec.IsTimeType(f.Type) {
				return fmt.Errorf("%w: field %s: %q in its jay tag: a time.Time has an offset in JSON, and its index holds instants without the word", errs.ErrIndex, f.Name, item)
			}
			for _, fields := range [][]string{t.indexes[last].Fields, t.names[last]} {
				fields[len(fields)-1] += AsUTC
			}
			if last == plain {
				plain = -1
			}
		case kind == "where" && named && last >= 0:
			if err := t.restrict(last, f, strings.TrimSpace(name)); err != nil {
				return err
			}
		case (kind == "index" || kind == "unique") && name == "" && plain >= 0: // "index,unique"
			last = plain
			t.indexes[last].Unique = t.indexes[last].Unique || kind == "unique"
		case kind == "index" || kind == "unique":
			if last = t.put(name, path, codec.IsTimeType(f.Type), kind == "unique"); name == "" {
				plain = last
			}
		default:
			return fmt.Errorf("%w: field %s: %q in its jay tag: it is one of id, version, lastModified, collection, expires, metadata, metadata=KEY, index, unique, index=NAME, unique=NAME, desc, utc, text, text=NAME, place, place=NAME, latitude, longitude, latitude=NAME, longitude=NAME, behind text analyzer=NAME, weight=NUMBER, and last, after index, unique or text, where=CONDITION", errs.ErrIndex, f.Name, item)
		}
	}
	return nil
}

// restrict sets the condition of an index. One field of an index may say it for all of them.
func (t *tagged) restrict(at int, f reflect.StructField, condition string) error {
	ix := &t.indexes[at]
	switch {
	case condition == "":
		return fmt.Errorf("%w: field %s: \"where=\" in its jay tag: a condition comes after it, such as where=Status = 'open'", errs.ErrIndex, f.Name)
	case ix.Where != "" && ix.Where != condition:
		return fmt.Errorf("%w: field %s: %q in its jay tag: another field of the index has the condition %q, and an index has one", errs.ErrIndex, f.Name, "where="+condition, ix.Where)
	}
	ix.Where = condition
	return nil
}

// worded is what tags say of an index of words.
type worded struct{ analyzers, weights []string } // by field; "" for what is not said

// TextName is the name of the index of all fields of a struct with the tag "text". Part of what programs rely on: it must not change.
const TextName = "text"

// putText adds a field to an index of words, and returns its position.
func (t *tagged) putText(name, path string) int {
	if name == "" {
		name = TextName
	}
	key := "text\x00" + name // no other kind of index has it
	at, found := t.byName[key]
	if !found {
		at = len(t.indexes)
		t.indexes, t.names = append(t.indexes, index.Index{Name: name, Kind: "text"}), append(t.names, nil)
		t.byName[key], t.words[at] = at, new(worded)
	}
	t.indexes[at].Fields, t.names[at] = append(t.indexes[at].Fields, path), append(t.names[at], path)
	t.words[at].analyzers, t.words[at].weights = append(t.words[at].analyzers, ""), append(t.words[at].weights, "")
	return at
}

// set sets the analyzer or the weight of the last field.
func (w *worded) set(kind, value string) {
	if kind == "analyzer" {
		w.analyzers[len(w.analyzers)-1] = value
	} else {
		w.weights[len(w.weights)-1] = value
	}
}

// options returns the options of the index: lists, if a tag says something.
func (w *worded) options() map[string]string {
	options := make(map[string]string)
	add := func(option, otherwise string, values []string) {
		if !slices.ContainsFunc(values, func(v string) bool { return v != "" }) {
			return
		}
		all := slices.Clone(values)
		for i, v := range all {
			if v == "" {
				all[i] = otherwise
			}
		}
		if len(slices.Compact(slices.Clone(all))) == 1 {
			all = all[:1] // one for all fields
		}
		options[option] = strings.Join(all, ", ")
	}
	add("analyzer", query.DefaultAnalyzer, w.analyzers)
	add("weights", "1", w.weights)
	return options
}

// isTagName reports whether a tag may name an index so. Other characters are those with which a
// tag that is written wrongly goes on, as in "index=a;index=b".
func isTagName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-./", r)
	})
}

// put adds a field to the index of this name, or to a new one, and returns its
// position.
func (t *tagged) put(name, path string, isTime, unique bool) int {
	at, found := t.byName[name]
	if !found || name == "" {
		at = len(t.indexes)
		t.indexes, t.names = append(t.indexes, index.Index{Name: name}), append(t.names, nil)
		t.byName[name] = at
	}
	t.names[at] = append(t.names[at], path)
	if isTime {
		path += AsDate
	}
	t.indexes[at].Fields = append(t.indexes[at].Fields, path)
	t.indexes[at].Unique = t.indexes[at].Unique || unique
	return at
}
