package browser_test

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

//go:embed audit.js
var auditScript string

// interactive are the roles of what one can use; each needs a name.
var interactive = []string{"button", "link", "textbox", "searchbox", "combobox", "listbox", "checkbox", "radio", "switch", "slider", "spinbutton", "tab", "menuitem",
	"menuitemcheckbox", "menuitemradio", "option", "treeitem", "dialog", "alertdialog", "progressbar", "meter", "tablist", "menu", "navigation", "region", "grid", "table"}

// audit looks for what keeps people out: controls, pictures and regions without a name,
// text that cannot be read, focus that is not seen, headings and landmarks out of order,
// what is cut off.
func (p *tab) audit(where string) {
	p.t.Helper()
	for _, problem := range p.mistakes() {
		p.t.Errorf("%s: %s", where, problem)
	}
}

// mistakes returns what an audit has found.
func (p *tab) mistakes() (problems []string) {
	p.t.Helper()
	p.eval(auditScript, &problems)
	for _, e := range p.tree() {
		switch {
		case e.name != "":
		case slices.Contains(interactive, e.role):
			problems = append(problems, e.role+" without a name: "+p.html(e))
		case e.role == "image" || e.role == "img" || e.role == "SvgRoot" || e.role == "graphics-document":
			problems = append(problems, "a picture without words: "+p.html(e))
		case e.properties["focusable"] == "true" && e.role == "generic":
			problems = append(problems, "has the focus, and no role: "+p.html(e))
		}
	}
	slices.Sort(problems)
	return slices.Compact(problems)
}

// html returns the beginning of an element's HTML.
func (p *tab) html(e part) (text string) {
	if err := p.tryOn(e, `function() { return (this.outerHTML ?? this.textContent).slice(0, 160); }`, &text); err != nil {
		return err.Error()
	}
	return text
}

// auditEverywhere audits the page as it is in windows from a phone's to a large screen's, light and dark.
func (p *tab) auditEverywhere(where string) {
	p.t.Helper()
	variants := make(map[string][]string) // of a problem
	for _, dark := range []bool{false, true} {
		p.dark(dark)
		for _, width := range []int64{360, 1440, 3840} {
			p.viewport(width, max(640, width*9/16))
			for _, problem := range p.mistakes() {
				variants[problem] = append(variants[problem], fmt.Sprintf("%d px %s", width, map[bool]string{false: "light", true: "dark"}[dark]))
			}
		}
	}
	for _, problem := range slices.Sorted(maps.Keys(variants)) {
		p.t.Errorf("%s: %s (%s)", where, problem, strings.Join(variants[problem], ", "))
	}
	p.viewport(1280, 800)
	p.dark(false)
}

// Ensure that the audit finds what it is there for.
func TestAudit_FindsMistakes(t *testing.T) {
	s := startServer(t)
	p := s.open("/studio/databases")
	p.see("There are no databases yet.")
	for mistake, want := range map[string]string{
		`const b = document.createElement('button'); b.className = 'probe'; main.append(b)`:                                                                                                                                   "button without a name",
		`const i = document.createElement('input'); i.className = 'probe'; main.append(i)`:                                                                                                                                    "textbox without a name",
		`const d = document.createElement('p'); d.textContent = 'faint'; d.className = 'probe'; main.append(d); d.style.setProperty('color', '#999')`:                                                                         "contrast",
		`const d = document.createElement('h5'); d.textContent = 'deep'; d.className = 'probe'; main.append(d)`:                                                                                                               "a heading of level 5",
		`const d = document.createElement('p'); d.id = 'page'; d.className = 'probe'; main.append(d)`:                                                                                                                         "the id page is there 2 times",
		`const d = document.createElement('a'); d.href = '#'; d.textContent = 'x'; d.tabIndex = 3; d.className = 'probe'; main.append(d)`:                                                                                     "a positive tabindex",
		`const d = document.createElement('p'); d.textContent = 'wide'; d.className = 'probe'; main.append(d); d.style.setProperty('width', '9000px')`:                                                                        "wide",
		`const d = document.createElement('button'); d.textContent = 'x'; d.className = 'probe'; main.append(d); d.style.setProperty('outline', 'none', 'important'); d.style.setProperty('box-shadow', 'none', 'important')`: "does not show that it has the focus",
		`const d = document.createElementNS('http://www.w3.org/2000/svg', 'svg'); d.setAttribute('role', 'img'); d.classList.add('probe'); main.append(d)`:                                                                    "a picture without words",
	} {
		p.eval(`(() => { const main = document.querySelector('main'); `+mistake+`; })()`, nil)
		problems := p.mistakes()
		if !slices.ContainsFunc(problems, func(problem string) bool { return strings.Contains(problem, want) }) {
			t.Errorf("after %s: got %q, want %q", mistake, problems, want)
		}
		p.eval(`document.querySelectorAll('.probe').forEach((n) => n.remove())`, nil)
	}
	p.auditEverywhere("no databases")
}
