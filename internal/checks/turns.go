package checks

import "github.com/jaydb/jay/internal/parts"

// InLine returns how many transactions and patches have a turn or wait for one.
func InLine(db any) int { return parts.Of(db).Writer.Lines.Len() }
