package main

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"
)

// smaller.
func TestReadLine(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		input string
		want  string
		err   error
	}{
		{"", "", io.EOF},
		{"ab", "ab", io.EOF},
		{"ab\nc", "ab\n", nil},
		{strings.Repeat("x", 99) + "\n", strings.Repeat("x", 99) + "\n", nil},
		{strings.Repeat("x", 100) + "\n", "", errLongLine},
		{strings.Repeat("x", 1000), "", errLongLine},
	} {
		got, err := readLine(bufio.NewReaderSize(strings.NewReader(test.input), 16), 100)
		if string(got) != test.want || !errors.Is(err, test.err) {
			t.Errorf("%.20q: got %q, %v", test.input, got, err)
		}
	}
}
