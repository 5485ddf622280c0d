package serve

import (
	"fmt"
	"slices"
	"strings"
)

// maxNameBytes bounds the name of a database.
const maxNameBytes = 128

// reservedNames cannot be names of databases: RavenDB reserves one, and Windows has no
// files with the others, whatever their extension.
var reservedNames = []string{"system", "con", "prn", "aux", "nul",
	"com1", "com2", "com3", "com4", "com5", "com6", "com7", "com8", "com9",
	"lpt1", "lpt2", "lpt3", "lpt4", "lpt5", "lpt6", "lpt7", "lpt8", "lpt9"}

// CheckName returns the key of a database: its name in lower case, for look-ups and for
// its directory. A name has only ASCII letters, digits, '_', '-' and '.', so it cannot be
// a path to elsewhere.
func CheckName(name string) (key string, err error) {
	rule := ""
	switch {
	case name == "":
		rule = "the name of a database must not be empty"
	case len(name) > maxNameBytes:
		rule = fmt.Sprintf("the name of a database has at most %d bytes, not %d", maxNameBytes, len(name))
	case strings.ContainsFunc(name, func(c rune) bool { return !NameCharacter(c) }):
		rule = "the name of a database has only ASCII letters, digits, '_', '-' and '.'"
	case name[0] == '.' || name[0] == '-' || name[len(name)-1] == '.' || strings.Contains(name, ".."):
		rule = "the name of a database begins with no dot or hyphen, ends with no dot, and has no two dots in a row"
	}
	key = strings.ToLower(name)
	stem, _, _ := strings.Cut(key, ".")
	if rule == "" && slices.Contains(reservedNames, stem) {
		rule = "the name is reserved"
	}
	if rule != "" {
		return "", BadRequest("invalid database name %.140q: %s", name, rule)
	}
	return key, nil
}

// NameCharacter reports whether the name of a database, a token or a request may have it.
func NameCharacter(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.'
}

// isToken reports whether text has only characters that are harmless in logs.
func isToken(text string) bool {
	for i := range len(text) {
		if !NameCharacter(rune(text[i])) {
			return false
		}
	}
	return true
}
