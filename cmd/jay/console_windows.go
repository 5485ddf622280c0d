package main

import (
	"os"

	"golang.org/x/sys/windows"
)

// enableEscapes makes the console interpret escape sequences, and returns a function
// that undoes that.
func enableEscapes(out *os.File) (undo func() error, err error) {
	var mode uint32
	handle := windows.Handle(out.Fd())
	if err := windows.GetConsoleMode(handle, &mode); err != nil {
		return nil, err
	}
	if err := windows.SetConsoleMode(handle, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING); err != nil {
		return nil, err
	}
	return func() error { return windows.SetConsoleMode(handle, mode) }, nil
}
