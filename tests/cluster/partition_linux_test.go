package cluster_test

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Ensure the same with the etcd of the system on machines of a network, whose lines are
// pulled: the leader's machine, a minority, a majority; and with processes of etcd that are
// killed and stopped.
func TestNetwork_Faults(t *testing.T) {
	isLong(t)
	w := newNetwork(t, 3)
	var hosts []string
	var machines [][]string
	for i := range 3 {
		hosts, machines = append(hosts, w.host(i)), append(machines, w.within(i))
	}
	members := newMembers(t, hosts, machines)
	for _, m := range members {
		m.start()
	}
	r := &rig{t: t, members: processes(members), client: dial(t, clientURLs(members))}
	r.leader()
	dir := t.TempDir()
	for i, tag := range tags {
		r.nodes = append(r.nodes, mustStartNode(t, tag, nodeConfig{
			Dir: filepath.Join(dir, tag), NodeTag: tag, Address: fmt.Sprintf("http://%s:8080", hosts[i]), Endpoints: r.members.urls(), Prefix: "tests/", Period: period,
		}, machines[i]...))
	}
	load := startWorkload(t, r.nodes, time.Second)
	load.agree(r.nodes...)
	for range rounds(t) {
		// The leader's line is pulled: its node is cut off, the others get a new leader.
		i := r.leader()
		r.step("the line of machine %d, where the leader is, is pulled", i+1)
		w.pull(i)
		load.agree(r.nodes[(i+1)%3], r.nodes[(i+2)%3])
		load.goOn(r.nodes[i])
		cutOff(t, r.nodes[i])
		w.plug(i)
		load.agree(r.nodes...)

		// Two lines: no node has a majority, whichever member it reaches.
		a, b := (i+1)%3, (i+2)%3
		r.step("the lines of machines %d and %d are pulled", a+1, b+1)
		w.pull(a)
		w.pull(b)
		load.goOn(r.nodes...)
		cutOff(t, r.nodes...)
		r.step("they are back")
		w.plug(a)
		w.plug(b)
		load.agree(r.nodes...)

		r.losesLeader(load)

		// A leader that stops without a word, and goes on as if it still led.
		i = r.leader()
		r.step("the process of the leader, member %d, is stopped", i+1)
		members[i].signal(syscall.SIGSTOP)
		load.agree(r.nodes...)
		members[i].signal(syscall.SIGCONT)
		load.agree(r.nodes...)

		r.jumps(load)
		r.compacts(load)
		r.stops(load)
		r.kills(load)
	}
	load.finish()
}
