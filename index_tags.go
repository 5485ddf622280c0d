package jay

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/codec"
	"github.com/jaydb/jay/internal/jsonpath"
)

// EnsureIndexes makes sure that the collection has the indexes declared by the tags
// of T's fields, and returns when all are ready:
//
//	type User struct {
//		ID    string
//		Email string    `jay:"unique"`
//		City  string    `jay:"index,index=byCityAndAge"`
//		Born  time.Time `jay:"index=byCityAndAge,desc"`
//		Tags  []string  `jay:"index"`
//		Home  Address   // fields of its own may be tagged, too
//	}
//
// "index" and "unique" declare an index on the field; with a name, all fields with
// that name form one index, in the order of the struct. "desc" makes the field
// descending in the declaration before it. Both words, "index,unique", declare one unique
// index. Fields of type time.Time, of pointers to it and of slices of it are entered as
// instants.
//
// An existing index that is declared otherwise now, as by a Jay that entered times as
// text, is replaced: see ReplaceIndex. Indexes that are no longer declared are kept. See
// DB.EnsureIndex for the rest. Indexes are no part of a transaction: on a collection
// from In EnsureIndexes returns ErrUsage.
func (c *Collection[T]) EnsureIndexes(ctx context.Context, opts ...IndexOption) error {
	db, ok := c.via.(*DB)
	if !ok {
		return fmt.Errorf("%w: EnsureIndexes in a transaction", ErrUsage)
	}
	declared, err := c.DeclaredIndexes()
	if err != nil {
		return err
	}
	opts = append(slices.Clip(opts), ReplaceIndex())
	return db.EnsureIndexes(ctx, c.m.Collection, declared, opts...)
}

// DeclaredIndexes returns the indexes declared by the tags of T's fields, in the
// order of the fields. It returns ErrIndex for an invalid tag.
func (c *Collection[T]) DeclaredIndexes() ([]Index, error) {
	t := tagged{byName: make(map[string]int)}
	if err := t.walk(c.m.Type, nil, nil); err != nil {
		return nil, fmt.Errorf("%s: %w", c.m.Type, err)
	}
	for i, ix := range t.indexes {
		if ix.Name == "" { // the same for times as for text, so that the one replaces the other
			ix.Name = catalog.DefaultName(t.names[i], "")
		}
		var err error
		if t.indexes[i], err = catalog.Canonical(ix, c.m.Collection); err != nil {
			return nil, fmt.Errorf("%s: %w", c.m.Type, err)
		}
	}
	return t.indexes, nil
}

// tagged gathers indexes from tags.
type tagged struct {
	indexes []Index
	names   [][]string     // parallel to indexes: their fields, of times without "as date"
	byName  map[string]int // position in indexes of those with a name
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
		if name == "-" || (!f.IsExported() && !f.Anonymous) || codec.IsMetaTag(f.Tag.Get("jay")) && len(within) == 1 {
			continue
		}
		at := path
		if !f.Anonymous || name != "" {
			if name == "" {
				name = f.Name
			}
			at = jsonpath.AppendMember(path[:len(path):len(path)], name)
		}
		if err := t.add(f, string(at)); err != nil {
			return err
		}
		if inner := structOf(f.Type); inner != nil {
			if err := t.walk(inner, at, within); err != nil {
				return err
			}
		}
	}
	return nil
}

// structOf returns the struct that a field holds, points to or lists, or nil.
func structOf(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
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
	for item := range strings.SplitSeq(tag, ",") {
		kind, name, _ := strings.Cut(strings.TrimSpace(item), "=")
		switch {
		case kind == "desc" && last >= 0:
			for _, fields := range [][]string{t.indexes[last].Fields, t.names[last]} {
				fields[len(fields)-1] = "-" + fields[len(fields)-1]
			}
			if last == plain {
				plain = -1
			}
		case (kind == "index" || kind == "unique") && name == "" && plain >= 0: // "index,unique"
			last = plain
			t.indexes[last].Unique = t.indexes[last].Unique || kind == "unique"
		case kind == "index" || kind == "unique":
			if last = t.put(name, path, codec.IsTimeType(f.Type), kind == "unique"); name == "" {
				plain = last
			}
		default:
			return fmt.Errorf("%w: field %s: %q in its jay tag: it is one of id, version, lastModified, collection, metadata, metadata=KEY, index, unique, index=NAME, unique=NAME, desc", ErrIndex, f.Name, item)
		}
	}
	return nil
}

// put adds a field to the index of this name, or to a new one, and returns its
// position.
func (t *tagged) put(name, path string, isTime, unique bool) int {
	at, found := t.byName[name]
	if !found || name == "" {
		at = len(t.indexes)
		t.indexes, t.names = append(t.indexes, Index{Name: name}), append(t.names, nil)
		t.byName[name] = at
	}
	t.names[at] = append(t.names[at], path)
	if isTime {
		path = catalog.AsDate(path)
	}
	t.indexes[at].Fields = append(t.indexes[at].Fields, path)
	t.indexes[at].Unique = t.indexes[at].Unique || unique
	return at
}
