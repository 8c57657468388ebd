#!/usr/bin/env bash
# setup.sh run|test: makes sure that what cannot come from Go modules is there.
#   run   PostgreSQL's server programs, for the embedded server of `verbatim up`
#   test  the same, and a C compiler, which the race detector needs
# As root on Debian what is missing is installed through apt; otherwise one
# sentence says what to install. Does nothing when nothing is missing.
set -Eeuo pipefail
say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

have_postgres() {
  local dir
  for dir in /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /opt/homebrew/opt/postgresql@*/bin /usr/local/opt/postgresql@*/bin /usr/local/pgsql/bin; do
    if [ -x "$dir/initdb" ] && [ -x "$dir/postgres" ]; then return 0; fi
  done
  command -v initdb >/dev/null && command -v postgres >/dev/null
}
have_compiler() { command -v "${CC:-gcc}" >/dev/null || command -v clang >/dev/null; }

install() {
  local what=$1 log
  shift
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    die "$what missing; on Debian this installs what is needed: apt-get install $*"
  fi
  say "installing $* through apt"
  log=$(mktemp)
  local apt=(apt-get -qq -y --no-install-recommends -o Dpkg::Options::=--force-confold install "$@")
  export DEBIAN_FRONTEND=noninteractive
  # The lists are fetched only when the ones at hand do not do.
  "${apt[@]}" >"$log" 2>&1 || { apt-get -qq update && "${apt[@]}"; } >"$log" 2>&1 ||
    { tail -n 20 "$log" >&2; die "apt could not install $*"; }
  rm -f "$log"
}

# Only the programs are wanted: without this, Debian's package would also create
# and start a server of its own.
no_main_cluster() {
  local conf=/etc/postgresql-common/createcluster.conf
  if [ "$(id -u)" != 0 ] || [ -e "$conf" ]; then return 0; fi
  mkdir -p "${conf%/*}"
  echo 'create_main_cluster = false' >"$conf"
}

case ${1:-} in
  run | test) ;;
  *) die "usage: setup.sh run|test" ;;
esac
command -v go >/dev/null || die "Go is missing; install Go 1.26 or later"
if ! have_postgres; then
  no_main_cluster
  install "PostgreSQL's server programs are" postgresql
  have_postgres || die "apt installed postgresql, but initdb is still not found"
fi
if [ "$1" = test ] && ! have_compiler; then
  install "a C compiler is" gcc libc6-dev
fi
