#!/usr/bin/env bash
# with-containers.sh COMMAND...: runs COMMAND with testcontainers-go set up to use
# local images only, and removes whatever containers, networks and volumes it
# leaves, however it ends. If this script itself is killed with SIGKILL, the
# resource reaper (build/ryuk) cleans up ten seconds later.
set -Eeuo pipefail
here=$(cd "$(dirname "$0")" && pwd)
die() { printf 'with-containers: %s\n' "$*" >&2; exit 1; }

[ $# -gt 0 ] || die "usage: with-containers.sh COMMAND..."
command -v docker >/dev/null || die "Docker is not installed; install it (Debian: apt-get install docker.io)"
docker info >/dev/null 2>&1 || die "the Docker engine does not answer; start it, or join the group that may use it"

"$here/postgres-image/build.sh" >/dev/null
"$here/ryuk/build.sh" >/dev/null
export TESTCONTAINERS_HUB_IMAGE_NAME_PREFIX=localhost # postgres:17-trixie means localhost/postgres:17-trixie
export TESTCONTAINERS_RYUK_DISABLED=${TESTCONTAINERS_RYUK_DISABLED:-false}
export TESTCONTAINERS_SESSION_ID=${TESTCONTAINERS_SESSION_ID:-s$(date +%s)x$$x$RANDOM}
case ${DOCKER_HOST:-} in
  # Without this, testcontainers-go may wait a minute for the gateway's address
  # where there is a /.dockerenv though the engine is local.
  '' | unix:*) export TESTCONTAINERS_HOST_OVERRIDE=${TESTCONTAINERS_HOST_OVERRIDE:-127.0.0.1} ;;
esac

label=org.testcontainers.sessionId=$TESTCONTAINERS_SESSION_ID
pid=
clean() {
  local containers networks volumes
  trap '' INT TERM HUP
  [ -z "$pid" ] || kill -KILL -- "-$pid" 2>/dev/null || true
  containers=$(docker ps -aq --filter "label=$label")
  [ -z "$containers" ] || xargs docker rm -fv <<<"$containers" >/dev/null 2>&1 || true
  networks=$(docker network ls -q --filter "label=$label")
  [ -z "$networks" ] || xargs docker network rm <<<"$networks" >/dev/null 2>&1 || true
  volumes=$(docker volume ls -q --filter "label=$label")
  [ -z "$volumes" ] || xargs docker volume rm -f <<<"$volumes" >/dev/null 2>&1 || true
}
trap clean EXIT
trap 'exit 143' TERM HUP
trap 'exit 130' INT

# Job control gives COMMAND a process group of its own, so that all of it, the
# test programs too, ends with this script.
set -m
"$@" </dev/null &
pid=$!
wait "$pid"
