//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "servers: the machines are network namespaces, which only Linux has")
	os.Exit(1)
}
