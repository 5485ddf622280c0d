package main

import (
	"regexp"
	"strings"
)

// What a test program prints of a test that fails, of one that still runs at the end of the
// time, of a message of a test, and of what ends a process.
var (
	failLine    = regexp.MustCompile(`^\s*--- FAIL: (\S+)`)
	runningLine = regexp.MustCompile(`^\s*(Test\S+) \(`)
	messageLine = regexp.MustCompile(`^\s+\S+\.go:\d+: (.*)`)
	rapidLine   = regexp.MustCompile(`^\[rapid\] failed after \d+ tests: (.*)`)
	fatalLine   = regexp.MustCompile(`^(?:panic|fatal error): (.*)`)
)

// notes are the messages that tests log and that report nothing.
var notes = regexp.MustCompile(`repeats it|^seed |^JAY_\w+=|^\[rapid\]`)

// maxSays bounds the quoted line of a test, in bytes.
const maxSays = 200

// read finds in the output of a test program which test has failed, and its first line.
func read(out string) result {
	var r result
	ended, more := "", false
	for line := range strings.Lines(out) {
		line = strings.TrimRight(line, "\r\n")
		if m := failLine.FindStringSubmatch(line); m != nil && len(m[1]) > len(r.test) && strings.HasPrefix(m[1], r.test) && r.says == "" {
			r.test = m[1] // the innermost of subtests, which follow their parents
		}
		if m := fatalLine.FindStringSubmatch(line); m != nil && ended == "" {
			ended = m[1]
			r.hung = strings.HasPrefix(ended, "test timed out after")
		}
		if m := runningLine.FindStringSubmatch(line); m != nil && r.hung && r.test == "" {
			r.test = m[1]
		}
		if more && r.says == "" {
			r.says = strings.TrimSpace(line) // of a message that begins with an end of line
		}
		more = false
		if m := messageLine.FindStringSubmatch(line); m != nil && r.says == "" && r.test != "" {
			if found := rapidLine.FindStringSubmatch(m[1]); found != nil {
				m = found
			}
			if more = m[1] == ""; !notes.MatchString(m[1]) {
				r.says = m[1]
			}
		}
	}
	if ended != "" && (r.says == "" || r.hung) {
		r.says = ended
	}
	if r.test == "" && ended != "" {
		r.test = "a panic"
	}
	if len(r.says) > maxSays {
		r.says = strings.ToValidUTF8(r.says[:maxSays], "") + "…"
	}
	return r
}
