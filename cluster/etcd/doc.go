// Package etcd lets the nodes of a cluster agree through etcd (version 3.4 and later): its
// Coordinator is the cluster.Coordinator for jay.Options.Cluster.
//
//	endpoints := []string{"http://10.0.0.1:2379", "http://10.0.0.2:2379", "http://10.0.0.3:2379"}
//	coordinator, err := etcd.Open(etcd.Config{Endpoints: endpoints})
//	if err != nil {
//		return err
//	}
//	defer coordinator.Close()
//	db, err := jay.Open("shop.jay", &jay.Options{NodeTag: "A", Cluster: coordinator})
//
// etcd can run as a server of its own, or inside the program: package embedded of the module
// github.com/jaydb/jay/cluster/embedded starts a member.
//
// # What is in etcd
//
// Keys begin with Config.Prefix. A record of package cluster with the key k is under prefix + "r/"
// + k. The key prefix + "format" has the format of the records, and the etcd cluster in which they
// were written. A Commit is one transaction: its conditions are compares of mod revisions, and its
// revision is the index of the records that it puts.
//
// # What goes wrong, and what happens then
//
// Each attempt of a request has a time limit. The coordinator retries a read, on another member,
// until the context ends. It retries a commit only if the commit has not left this process or was
// rejected. A commit that may have been carried out is an ErrUnknownOutcome and is never sent
// again. So leader changes, members that are down and broken connections cost time, but never more
// than the context allows. Nothing depends on clocks: no lease of etcd is used.
//
// An *Error names the endpoints, the problem and the remedy. Since Open does not connect,
// a wrong address, certificate or password is reported by the first call.
package etcd
