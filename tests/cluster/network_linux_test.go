package cluster_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// network is machines, each a network namespace of Linux, and a switch between them: a
// bridge, on which this process has an address as well. Lines are pulled for real: packets
// vanish, and no connection is closed.
type network struct {
	t      testing.TB
	prefix string // of the names of all that is made
	subnet string
}

// newNetwork makes n machines, or skips the test where that needs rights that the process
// does not have. On a machine of CI, where JAY_NETNS is "must", it fails instead.
func newNetwork(t testing.TB, n int) *network {
	t.Helper()
	if os.Getuid() != 0 {
		if os.Getenv("JAY_NETNS") == "must" {
			t.Fatal("network namespaces need root")
		}
		t.Skip("network namespaces need root; make cluster as root runs this")
	}
	w := &network{t: t, prefix: fmt.Sprintf("jay%d", os.Getpid()%100000), subnet: fmt.Sprintf("10.%d.%d", 128+os.Getpid()>>8&63, os.Getpid()&255)}
	t.Cleanup(func() {
		for i := range n {
			_ = exec.Command("ip", "netns", "del", w.machine(i)).Run()
			_ = exec.Command("ip", "link", "del", w.line(i)).Run()
		}
		_ = exec.Command("ip", "link", "del", w.prefix+"b").Run()
	})
	w.ip("link", "add", w.prefix+"b", "type", "bridge")
	w.ip("addr", "add", w.subnet+".254/24", "dev", w.prefix+"b")
	w.ip("link", "set", w.prefix+"b", "up")
	for i := range n {
		end := w.prefix + "e" + fmt.Sprint(i)
		w.ip("netns", "add", w.machine(i))
		w.ip("link", "add", w.line(i), "type", "veth", "peer", "name", end)
		w.ip("link", "set", end, "netns", w.machine(i))
		w.ip("link", "set", w.line(i), "master", w.prefix+"b")
		w.ip("link", "set", w.line(i), "up")
		w.ip("-n", w.machine(i), "link", "set", "lo", "up")
		w.ip("-n", w.machine(i), "addr", "add", w.host(i)+"/24", "dev", end)
		w.ip("-n", w.machine(i), "link", "set", end, "up")
	}
	return w
}

// ip runs the program ip.
func (w *network) ip(args ...string) {
	w.t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		w.t.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

func (w *network) machine(i int) string { return fmt.Sprint(w.prefix, "m", i) }
func (w *network) line(i int) string    { return fmt.Sprint(w.prefix, "v", i) }
func (w *network) host(i int) string    { return fmt.Sprint(w.subnet, ".", i+1) }

// within is the command that runs a program on a machine.
func (w *network) within(i int) []string {
	return []string{"ip", "netns", "exec", w.machine(i)}
}

// pull pulls the line of a machine, and plug puts it back.
func (w *network) pull(i int) {
	w.t.Helper()
	w.ip("link", "set", w.line(i), "down")
}

func (w *network) plug(i int) {
	w.t.Helper()
	w.ip("link", "set", w.line(i), "up")
}
