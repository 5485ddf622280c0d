package embedded

import "go.uber.org/zap"

// Log returns the logger that the member's etcd has.
func (m *Member) Log() *zap.Logger { return m.etcd.GetLogger() }

// PeerAddress returns where the member listens for others.
func (m *Member) PeerAddress() string { return m.etcd.Peers[0].Addr().String() }

// ID returns what etcd calls the member.
func (m *Member) ID() string { return m.etcd.Server.MemberID().String() }

// HasLeader reports whether the member knows a leader.
func (m *Member) HasLeader() bool { return m.etcd.Server.Leader() != 0 }

// ClientAddress returns where the member listens for coordinators.
func (m *Member) ClientAddress() string { return m.etcd.Clients[0].Addr().String() }
