//go:build !unix

package pgtest

import (
	"errors"
	"os/exec"
)

func asOther(*exec.Cmd) {}

func giveAway(...string) error { return nil }

func killAll(int) error { return errors.New("on this system, tests do not kill servers") }
