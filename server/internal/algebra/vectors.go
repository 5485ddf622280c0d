package algebra

import "strings"

// vectors translates what definitions have for vectors.
type vectors struct{ *translator }

// made returns the vector that CreateVector makes: a member of the document as it is, whose form the options of the field say.
func (t vectors) made(n *node, name string, args []*node, s *scope) (value, error) {
	if strings.HasPrefix(name, "c") != t.script {
		return value{}, t.fail(n.at, "the function %.100s is not there", name)
	}
	if t.reducing {
		return value{}, t.fail(n.at, "%s: a vector is made in a map", name)
	}
	if len(args) != 1 {
		return value{}, t.fail(n.at, "%s takes the member that is the vector", name)
	}
	v, err := t.eval(args[0], s)
	if err == nil && (v.shape != isReference || v.root != ofDocument && v.root != ofElement || len(v.path) == 0) {
		err = t.fail(n.at, "%s: a vector is a member of the document, and is not computed", name)
	}
	return v, err
}
