package server_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Ensure that the image runs as a user without rights and has nothing but the command.
func TestDockerfile(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	stages := regexp.MustCompile(`(?m)^FROM (\S+)`).FindAllStringSubmatch(string(text), -1)
	if len(stages) != 2 || stages[1][1] != "scratch" {
		t.Errorf("got the stages %v, want two, the second from scratch", stages)
	}
	_, last, _ := strings.Cut(string(text), "FROM scratch")
	for _, line := range []string{"USER 65532:65532", "VOLUME /data", `ENTRYPOINT ["/jay"]`, "--chown=65532:65532 /out/data /data"} {
		if !strings.Contains(last, line) {
			t.Errorf("the last stage lacks %s", line)
		}
	}
	mod, err := os.ReadFile("../cmd/jay/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(string(mod))[1]
	if stages[0][1] != "golang:"+version {
		t.Errorf("the image is built with %s, the module needs go %s", stages[0][1], version)
	}
}

// Ensure that systemd takes the unit, where there is systemd, and that it has what keeps
// the server from the rest of the system.
func TestUnit(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("jay.service")
	if err != nil {
		t.Fatal(err)
	}
	section, seen := "", make(map[string]bool)
	for line := range strings.SplitSeq(string(text), "\n") {
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			section = strings.Trim(line, "[]")
		default:
			name, _, found := strings.Cut(line, "=")
			if !found {
				t.Errorf("%q is no setting", line)
			}
			seen[section+" "+name] = true
		}
	}
	for _, name := range []string{"ExecStart", "User", "StateDirectory", "NoNewPrivileges", "CapabilityBoundingSet", "ProtectSystem", "ProtectHome", "PrivateTmp", "PrivateDevices", "SystemCallFilter", "RestrictAddressFamilies", "MemoryDenyWriteExecute", "UMask"} {
		if !seen["Service "+name] {
			t.Errorf("the unit has no %s", name)
		}
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("there is no systemd-analyze here: only the settings were looked at")
	}
	unit := filepath.Join(t.TempDir(), "jay.service")
	there := strings.Replace(string(text), "/usr/local/bin/jay", os.Args[0], 1) // a program that is there
	if err := os.WriteFile(unit, []byte(there), 0o666); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(analyze, "verify", unit).CombinedOutput(); err != nil || strings.Contains(string(out), "Unknown") {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}
