package raven

import "testing"

// Ensure that names with hyphens stand in quotes, and that all else stays as it is.
func TestQuoteHyphens(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"from Users":                                                      "from Users",
		"from U where first-name = $p0":                                   "from U where 'first-name' = $p0",
		"from U as u where u.a-b.c-d1 != -1":                              "from U as u where u.'a-b'.'c-d1' != -1",
		"from U where a - b = -1 and c -d-e":                              "from U where a - b = -1 and c -'d-e'",
		"from U where x = 'a-b' or y = \"c-d\" or z = 'it\\'s a-b'":       "from U where x = 'a-b' or y = \"c-d\" or z = 'it\\'s a-b'",
		"from @all_docs where @metadata.@last-modified > $a-b":            "from @all_docs where @metadata.@last-modified > $a-b",
		"from U where @metadata.Raven-Clr-Type = 1e-5":                    "from U where @metadata.Raven-Clr-Type = 1e-5",
		"from U // a-b\nwhere a-b = 1 /* it's c-d */ and e-f = 2":         "from U // a-b\nwhere 'a-b' = 1 /* it's c-d */ and 'e-f' = 2",
		"from U as u where u.a-b = 1 select { X : u.n-u.m, Y: '}a-b' }":   "from U as u where u.'a-b' = 1 select { X : u.n-u.m, Y: '}a-b' }",
		"declare function f(o) { return { A: o.a-b }; } from U where a-b": "declare function f(o) { return { A: o.a-b }; } from U where 'a-b'",
		"from U where größe-ä = 1 and a- = 2 and -b = 3":                  "from U where 'größe-ä' = 1 and a- = 2 and -b = 3",
		"from U where x = 'a-":                                            "from U where x = 'a-",
		"select { a-b":                                                    "select { a-b",
	} {
		if got := quoteHyphens(text); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
