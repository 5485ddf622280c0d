package server

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Ensure that docs/server/protocol.md lists the members of bodies that are accepted and not heeded,
// with the reason, as the code has them. It reads the sources of the rooms.
func TestBodies_IgnoredMembersAreListed(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("internal", "*", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	tagged := regexp.MustCompile("(?m)^\\s+(\\w+)\\s+json\\.RawMessage\\s+`(?:json:\"(\\w+)\" )?ignored:\"([^\"]+)\"`")
	var code, listed []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range tagged.FindAllStringSubmatch(string(text), -1) {
			name := m[1]
			if m[2] != "" {
				name = m[2]
			}
			code = append(code, name+": "+m[3])
		}
	}
	guide, err := os.ReadFile("../docs/server/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(guide), "\n## Members of bodies\n")
	part, _, _ = strings.Cut(part, "\n## ")
	for _, m := range regexp.MustCompile("(?m)^\\| (`[^|]*`) \\| [^|]* \\| ([^|]*) \\|").FindAllStringSubmatch(part, -1) {
		for name := range strings.SplitSeq(m[1], ", ") {
			listed = append(listed, strings.Trim(name, "`")+": "+strings.TrimSpace(m[2]))
		}
	}
	slices.Sort(code)
	slices.Sort(listed)
	if len(code) < 10 || !slices.Equal(code, listed) {
		t.Errorf("the code has\n%s\nthe guide lists\n%s", strings.Join(code, "\n"), strings.Join(listed, "\n"))
	}
}
