// Package embedded runs a member of an etcd cluster inside the program, so that the same
// program on three machines becomes a cluster without another server to be looked after.
//
//	member, err := embedded.Start(embedded.Config{
//		Name: "a", Dir: "/var/lib/shop/etcd",
//		PeerURL: "https://10.0.0.1:2380", ClientURL: "https://10.0.0.1:2379",
//		Peers:   map[string]string{"a": "https://10.0.0.1:2380", "b": "https://10.0.0.2:2380", "c": "https://10.0.0.3:2380"},
//		PeerTLS: files, ClientTLS: files,
//	})
//	if err != nil {
//		return err
//	}
//	defer member.Close()
//	coordinator, err := etcd.Open(etcd.Config{Endpoints: clientURLs, TLS: config})
//
// The module github.com/jaydb/jay/cluster/etcd has the coordinator that talks to the members. Name
// the client URLs of all of them there: a program goes on when its own member is down.
//
// # How many
//
// Three members go on when one is lost, five when two are. Two are worse than one: they stop when either
// is lost. A member needs a disk that syncs quickly, about 100 MB of memory, and a network
// whose round trip is well below Config.Heartbeat.
//
// # Security
//
// An etcd without TLS obeys everyone who reaches it. A URL with http must therefore be that
// of a loopback address; elsewhere both sides of each connection show a certificate (TLS). A
// Config with Insecure allows http in a network that is protected otherwise.
//
// # Limits
//
// etcd ends its process when its files cannot be written. Here the member fails instead: Done is
// closed, and Err says why. Restart it when the cause is gone.
package embedded
