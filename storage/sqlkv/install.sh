#!/usr/bin/env bash
# Puts PostgreSQL on this machine for the tests of storage/sqlkv: by apt-get, if it is not there. "install.sh cluster" adds
# what a PostgreSQL that fails over needs: Patroni, etcd, and ip for network namespaces. What it cannot
# install fails the run. make postgres calls it.
set -euo pipefail

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }
apt() { as_root apt-get -o Acquire::Retries=5 -o DPkg::Lock::Timeout=300 "$@"; }

need=()
if ! command -v initdb >/dev/null && ! compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null; then
	need+=(postgresql)
	# The package starts no server of its own: the tests start theirs.
	as_root mkdir -p /etc/postgresql-common
	echo 'create_main_cluster = false' | as_root tee /etc/postgresql-common/createcluster.conf >/dev/null
fi
if [ "${1:-}" = cluster ]; then
	command -v etcd >/dev/null || need+=(etcd-server)
	# Debian's Patroni only suggests the client of etcd.
	command -v patroni >/dev/null && /usr/bin/python3 -c 'import etcd, psycopg2' 2>/dev/null || need+=(patroni python3-etcd python3-psycopg2)
	command -v ip >/dev/null || need+=(iproute2)
	command -v ps >/dev/null || need+=(procps)
fi
if [ ${#need[@]} -gt 0 ]; then
	apt update -q
	apt install -qy --no-install-recommends "${need[@]}"
fi
{ command -v initdb || compgen -G '/usr/lib/postgresql/*/bin/initdb'; } | tail -1
