package patch

import "github.com/jaydb/jay/internal/jsonpath"

// Strict returns the edit e in a form that makes no missing objects on its path, as in an
// assignment in JavaScript. A strict edit fails if the object or the array that it puts a value
// into, or removes one from, is missing or null. Increment needs a number or null at the path.
// Append, AddToSet, Remove and the like need an array. A path with [] leads nowhere if an array is
// empty: then the edit changes nothing. Strict returns Merge and JSONPatch, which have no path, as
// they are.
func Strict(e Edit) Edit {
	if e.path.IsZero() || e.err != nil {
		return e
	}
	run := e.run
	e.strict, e.run = true, func(e *Edit, t *tree) error {
		if err := e.checkThere(t); err != nil {
			return err
		}
		return run(e, t)
	}
	return e
}

// checkThere checks that what a strict edit changes is there.
func (e *Edit) checkThere(t *tree) error {
	end, wanted := e.path.Len(), jsonpath.Array
	switch e.verb {
	case verbIncrement:
		wanted = jsonpath.Number // or null: the edit refuses anything else
	case verbSet, verbUnset, verbRename:
		end--
		if wanted = jsonpath.Array; e.path.At(end).Kind == jsonpath.Member {
			wanted = jsonpath.Object
		}
	}
	look := *e
	look.replacement = nil // a walk over all elements would apply it
	found := false
	err := look.walk(t, &t.root, 0, end, false, func(n *node) error {
		found = true
		if kind := n.kind(); kind != wanted && wanted != jsonpath.Number {
			return e.error("what is changed must be there, and "+kindText(wanted), "it is "+kindText(kind))
		}
		return nil
	})
	if err == nil && !found && !e.path.FansOut() {
		return e.error("what is changed must be there, and "+kindText(wanted), "it is missing")
	}
	return err
}

// Verbs of the edits. The strict form of the first four differs from that of edits of an array.
//
// Jay stores a hash of them, and edits are sent by them: they must not change.
const (
	verbSet        = "set"
	verbUnset      = "unset"
	verbIncrement  = "increment"
	verbRename     = "rename"
	verbAppend     = "append"
	verbAddToSet   = "add to set"
	verbRemove     = "remove"
	verbPopFirst   = "pop first"
	verbPopLast    = "pop last"
	verbMerge      = "merge"
	verbOperations = "JSON Patch"
)
