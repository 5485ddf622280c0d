#!/usr/bin/env bash
# Puts PostgreSQL on this machine for the tests of storage/sqlkv: by apt-get, if it is not there. What it cannot
# install fails the run. make postgres calls it.
set -euo pipefail

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }

if ! command -v initdb >/dev/null && ! compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null; then
	as_root apt-get -o Acquire::Retries=5 -o DPkg::Lock::Timeout=300 update -q
	# The package starts no server of its own: the tests start theirs.
	as_root mkdir -p /etc/postgresql-common
	echo 'create_main_cluster = false' | as_root tee /etc/postgresql-common/createcluster.conf >/dev/null
	as_root apt-get -o Acquire::Retries=5 -o DPkg::Lock::Timeout=300 install -qy --no-install-recommends postgresql
fi
{ command -v initdb || compgen -G '/usr/lib/postgresql/*/bin/initdb'; } | tail -1
