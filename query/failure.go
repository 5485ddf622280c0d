package query

import (
	"errors"
	"fmt"
	"strings"
)

// Reason returns, in words, why an expression has failed for a document: see [Reader.Failed]. The
// text does not name the expression, and has at most 300 bytes.
func Reason(err error) string {
	large := (*LimitError)(nil)
	text := err.Error()
	if errors.As(err, &large) {
		text = fmt.Sprintf("%d %s, of which at most %d are allowed", large.Actual, large.What, large.Limit)
	} else if _, why, found := strings.Cut(text, errOperand.Error()+": "); found {
		text = why
	}
	const most = 300
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most-3], "") + "..."
	}
	return text
}

// ComputesTooMuch returns the bound that an expression has exceeded by everything that it computes
// for one document, intermediate results included. It returns nil for another failure. A query ends
// with this error. Other failures only leave the document without a value.
func ComputesTooMuch(failed error) *LimitError {
	large := (*LimitError)(nil)
	if errors.As(failed, &large) && large.Limit == maxComputed {
		return large
	}
	return nil
}
