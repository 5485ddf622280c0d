package jsonpath

import (
	"fmt"
	"strings"
)

// Loaded documents
//
// A path may lead through a reference into the document that it names: load(CustomerId).Name is the member Name of the document whose ID is
// at CustomerId. Such a path is not looked up in a body, but in an expanded one, in which each loaded document stands beside its reference
// (package loads). The name of that member begins with a byte that is in no JSON, so that no document has it.

// loadMark begins the name of the member that holds what a reference names.
const loadMark = "\xff"

// LoadedName returns the name of the member that holds what the member of a name refers to.
func LoadedName(name string) string { return loadMark + name }

// IsLoadedName reports whether LoadedName has made a name.
func IsLoadedName(name string) bool { return strings.HasPrefix(name, loadMark) }

// Load returns the path that leads through the reference at ref, which has at least one step, and then along rest.
func Load(ref, rest Path) (Path, error) {
	steps := make([]Step, 0, len(ref.steps)+len(rest.steps))
	steps = append(append(steps, ref.steps...), rest.steps...)
	at := len(ref.steps) - 1
	for at >= 0 && steps[at].Kind != Member {
		at--
	}
	if at < 0 || strings.HasPrefix(steps[at].Name, loadMark) {
		return Path{}, fmt.Errorf("load(%s): what is loaded is no reference: name a member of it", ref.text)
	}
	steps[at].Name = LoadedName(steps[at].Name)
	return Path{textOf(steps), steps}.within()
}

// Within is Join, or an error if the path becomes too long.
func (p Path) Within(rest Path) (Path, error) { return p.Join(rest).within() }

func (p Path) within() (Path, error) {
	if len(p.steps) > MaxSteps || len(p.text) > MaxBytes {
		return Path{}, fmt.Errorf("a path has at most %d steps and %d bytes", MaxSteps, MaxBytes)
	}
	return p, nil
}

// Loads reports whether the path leads through a reference.
func (p Path) Loads() bool {
	for _, s := range p.steps {
		if s.IsLoad() {
			return true
		}
	}
	return false
}

// IsLoad reports whether the step is the one behind a reference, into what it names.
func (s Step) IsLoad() bool { return s.Kind == Member && strings.HasPrefix(s.Name, loadMark) }

// Reference returns the name of the member that is the reference of such a step.
func (s Step) Reference() string { return strings.TrimPrefix(s.Name, loadMark) }

// textOf returns the canonical text of steps.
func textOf(steps []Step) string {
	var text []byte
	for i := 0; i < len(steps); i++ {
		s := steps[i]
		if !s.IsLoad() {
			text = appendStep(text, s)
			continue
		}
		text = AppendMember(text, s.Reference())
		for i+1 < len(steps) && steps[i+1].Kind != Member {
			i++
			text = appendStep(text, steps[i])
		}
		text = append(append([]byte("load("), text...), ')')
	}
	return string(text)
}

// Join returns the path of the steps of p, and behind them those of rest.
func (p Path) Join(rest Path) Path {
	steps := append(p.steps[:len(p.steps):len(p.steps)], rest.steps...)
	return Path{textOf(steps), steps}
}
