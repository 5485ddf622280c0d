#!/usr/bin/env bash
# Runs RavenDB's client for Node against jay serve, in the versions of package.json. It
# installs Node with apt-get if there is none, and the clients with npm. make interop
# calls it. With "install" it only installs.
set -euo pipefail
cd "$(dirname "$0")"
work=../../bin/_interop # the go command looks into no directory of such a name
mkdir -p "$work"

if ! command -v npm >/dev/null; then
	apt-get -o Acquire::Retries=5 -o DPkg::Lock::Timeout=300 update -q
	apt-get -o Acquire::Retries=5 -o DPkg::Lock::Timeout=300 install -qy --no-install-recommends nodejs npm
fi
node --version
if [ "${1:-}" = install ]; then
	exit
fi
cp package.json package-lock.json client.mjs definitions.mjs "$work"
(cd "$work" && npm ci --fetch-retries=5 --ignore-scripts --no-audit --no-fund --loglevel=error)
"${GO:-go}" build -o "$work/jay" ../../cmd/jay

# The results of JavaScript that the tests of scripts compare with are Node's.
JAY_NODE=1 "${GO:-go}" test -vet=off -count=1 -run 'TestNode_Says$' ../../internal/script

cd "$work"
for client in ravendb5 ravendb7; do
	rm -rf data address
	./jay serve --data data --listen 127.0.0.1:0 --log-level warn >address 2>log &
	server=$!
	trap 'kill -9 "$server" 2>/dev/null || true' EXIT
	for _ in $(seq 300); do
		[ -s address ] && break
		sleep 0.1
	done
	timeout 300 node client.mjs "$client" "$(sed 's/^Serving //' address)" || { cat log; exit 1; }
	kill -TERM "$server"
	wait "$server"
	trap - EXIT
	# What the server could not answer is in its log.
	if grep level=ERROR log; then
		exit 1
	fi
done
