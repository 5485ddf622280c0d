package copier

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/storage"
)

// The rules, conditions under which a store can be copied. RuleUnwritten: nothing writes to the source from the beginning of a copy to its end. RuleWhole: the source is a whole database of its
// own. RuleEmpty: the target is empty, or an unfinished copy. RuleSame: an unfinished copy goes on from the same source, with the same tag.
// RuleAlone: one process makes a copy at a time. RuleEqual: in the end the target has the keys and values of the source.
const (
	RuleUnwritten = "unwritten source"
	RuleWhole     = "whole source"
	RuleEmpty     = "empty target"
	RuleSame      = "same copy"
	RuleAlone     = "one copier"
	RuleEqual     = "equal target"
)

// Error is the error of a copy that cannot be made. It is an errs.ErrCopy.
type Error struct {
	Rule    string
	Store   string // the name of the store that does not keep it
	Problem string
	Do      string // what to do
}

// Error names the rule, the store, the problem, and what to do.
func (e *Error) Error() string {
	return fmt.Sprintf("%v: %s: %q: %s; %s", errs.ErrCopy, e.Rule, e.Store, e.Problem, e.Do)
}

// Is makes errors.Is find errs.ErrCopy.
func (e *Error) Is(target error) bool { return target == errs.ErrCopy }

// MaxLong is how many records a LimitError lists.
const MaxLong = 1000

// LimitError is the error of a copy whose source has records that the target cannot store. It is a storage.ErrTooLarge. Nothing was written.
type LimitError struct {
	Store   string   // the name of the target
	Found   int64    // records, also those that are not listed
	Records []string // the first MaxLong of them, each with what of it is too long, and the limit
}

// Error names the first records.
func (e *LimitError) Error() string {
	list := slices.Clone(e.Records[:min(len(e.Records), 5)])
	if more := e.Found - int64(len(list)); more > 0 {
		list = append(list, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("%v: %d records are longer than %q can store, and nothing was written: %s", storage.ErrTooLarge, e.Found, e.Store, strings.Join(list, "; "))
}

// Unwrap returns storage.ErrTooLarge.
func (e *LimitError) Unwrap() error { return storage.ErrTooLarge }
