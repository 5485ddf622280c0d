package serve

import "strings"

// Quote returns a text or a name in quotes, as RQL has it.
func Quote(text string) string { return "'" + quoting.Replace(text) + "'" }

var quoting = strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\r", `\r`, "\t", `\t`)
