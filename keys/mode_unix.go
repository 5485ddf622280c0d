//go:build !windows

package keys

// modes says that the system has modes of files.
const modes = true
