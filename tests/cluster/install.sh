#!/usr/bin/env bash
# Puts what the tests of clusters need on this machine: etcd, and ip for network namespaces
# where root may make them. It uses apt-get; if there is no package, it builds etcd from
# the Go proxy. What it cannot install fails the run. make cluster calls it.
set -euo pipefail
cd "$(dirname "$0")"
go="${GO:-go}"

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }
install() {
	as_root apt-get -o Acquire::Retries=5 update -q &&
		as_root apt-get -o Acquire::Retries=5 install -qy --no-install-recommends "$@"
}

if ! command -v etcd >/dev/null && [ ! -x ../../bin/etcd ]; then
	install etcd-server || "$go" build -o ../../bin/etcd go.etcd.io/etcd/server/v3
fi
if [ "$(id -u)" = 0 ] && ! command -v ip >/dev/null; then
	install iproute2
fi
{ command -v etcd || echo ../../bin/etcd; } | tail -1
