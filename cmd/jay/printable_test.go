package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// hostile is a text that a terminal would obey: a title, a report of the cursor, C1, a
// carriage return, a text from right to left.
const hostile = "a\x1b]0;owned\x07b\u009b6nc\rd\u202egpj.exe\x7f"

// Ensure that no text of a document, a file or a server reaches a terminal as a command to
// it, not in an error, a note or a result.
func TestPrintable_EscapeSequences(t *testing.T) {
	const want = `a\u001b]0;owned\u0007b\u009b6nc\u000dd\u202egpj.exe\u007f`
	var errs bytes.Buffer
	a := &app{stderr: &errs, stdout: bufio.NewWriter(io.Discard)}
	a.complain(errors.New("the table "+hostile), "")
	a.note("the table %s", hostile)
	if got := errs.String(); got != "jay: the table "+want+"\nnote: the table "+want+"\n" {
		t.Errorf("got %q", got)
	}
	errs.Reset()
	a.json = true
	a.complain(errors.New("the table "+hostile), "")
	if got := errs.String(); got != `{"error":"the table `+strings.ReplaceAll(want, `\u000d`, `\r`)+`"}`+"\n" {
		t.Errorf("got %q", got)
	}

	var terminal bytes.Buffer
	text := "Größe\t日本 🙂\n" + hostile + "\xff\n"
	if _, err := io.Copy(&printableWriter{w: &terminal}, iotest.OneByteReader(bytes.NewReader([]byte(text)))); err != nil {
		t.Fatal(err)
	}
	if got := terminal.String(); got != "Größe\t日本 🙂\n"+want+`\xff`+"\n" {
		t.Errorf("got %q", got)
	}
}
