//go:build !windows

package main

// terminalName opens the terminal of the process.
const terminalName = "/dev/tty"
