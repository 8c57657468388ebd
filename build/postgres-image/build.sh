#!/usr/bin/env bash
# build.sh makes sure that a PostgreSQL image exists in the local Docker Engine
# under one name, $PG_IMAGE, whichever way works here:
#   1. it is there already             -> nothing to do
#   2. the public image can be pulled  -> pull it, give it that name
#   3. otherwise                       -> make it from Debian's signed packages
# Prints the image's name on standard output; all else goes to standard error.
# Run again after a kill at any point: nothing half made is ever tagged.
set -Eeuo pipefail
PG_MAJOR=${PG_MAJOR:-17}
PG_SUITE=${PG_SUITE:-trixie}
PG_IMAGE=${PG_IMAGE:-localhost/postgres:$PG_MAJOR-$PG_SUITE}
PG_OFFICIAL=${PG_OFFICIAL:-postgres:$PG_MAJOR-$PG_SUITE}
PG_PULL_TIMEOUT=${PG_PULL_TIMEOUT:-120}          # seconds; 0: do not try
here=$(cd "$(dirname "$0")" && pwd)
say() { printf 'postgres-image: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

docker info >/dev/null 2>&1 || die "the Docker engine does not answer; start it, or install it (Debian: apt-get install docker.io)"

digest() { if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi; }
recipe=$(cat "$here/build.sh" "$here/docker-entrypoint.sh" | digest | cut -c1-16)
label=verbatim.postgres-image.recipe
ready() {
  local have
  have=$(docker image inspect -f "{{with .Config.Labels}}{{index . \"$label\"}}{{end}} {{.Id}}" "$PG_IMAGE" 2>/dev/null) || return 1
  case $have in
    "$recipe "*) say "$PG_IMAGE is up to date" ;;
    " sha256:"*) say "$PG_IMAGE is the public image" ;;
    *) return 1 ;;
  esac
  echo "$PG_IMAGE"
}
if ready; then exit 0; fi

# One maker at a time; whoever waited finds the image made.
cache=${PG_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/verbatim/postgres-image/$PG_SUITE}
mkdir -p "$cache"
exec 9>"$cache/lock"
if command -v flock >/dev/null; then flock 9; fi
if ready; then exit 0; fi

pull() {
  if command -v timeout >/dev/null; then timeout "$PG_PULL_TIMEOUT" docker pull -q "$1" >&2; else docker pull -q "$1" >&2; fi
}
if [ "$PG_PULL_TIMEOUT" != 0 ] && pull "$PG_OFFICIAL"; then
  docker tag "$PG_OFFICIAL" "$PG_IMAGE"
  say "$PG_IMAGE is $PG_OFFICIAL, pulled"
  echo "$PG_IMAGE"
  exit 0
fi

say "cannot pull $PG_OFFICIAL; making $PG_IMAGE from Debian packages ($PG_SUITE)"
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
  die "without a registry the image is made from Debian packages, which needs root on Debian"
fi
# The Debian mirrors are those that this machine's apt uses already.
mirrors() {
  { cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null || true; } |
    sed -nE 's/^URIs: *([^ ]+).*/\1/p; s/^deb +(\[[^]]*\] *)?([^ ]+) .*/\2/p' | grep -E '/debian(-security)?/?$' || true
}
mirror=${PG_MIRROR:-$(mirrors | grep -v security | head -n 1 || true)}
security=${PG_SECURITY_MIRROR-$(mirrors | grep security | head -n 1 || true)}
[ -n "$mirror" ] || die "this machine's apt names no Debian mirror; set PG_MIRROR"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$cache"/state/lists/partial "$cache"/archives/partial "$work/root" "$work/debs"
: >"$work/status"
key=/usr/share/keyrings/debian-archive-keyring.gpg
echo "deb [signed-by=$key] $mirror $PG_SUITE main" >"$work/sources.list"
[ -z "$security" ] || echo "deb [signed-by=$key] $security $PG_SUITE-security main" >>"$work/sources.list"
cat >"$work/apt.conf" <<A
Dir::Etc::sourcelist "$work/sources.list";
Dir::Etc::sourceparts "-";
Dir::State "$cache/state";
Dir::State::status "$work/status";
Dir::Cache "$cache";
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::Retries "3";
A
export APT_CONFIG=$work/apt.conf
apt-get -qq update >&2

# apt works out what PostgreSQL needs; what only packaging scripts need (Perl,
# ssl-cert, ...) and the JIT compiler's LLVM are left out.
left_out='perl.*|lib.*-perl|libperl.*|libgdbm.*|libdb5.*|libllvm.*|libz3.*|libedit2|libbsd0|libmd0|debconf|ucf'
left_out+='|ssl-cert|openssl.*|postgresql.*-common(-dev)?|sensible-utils|adduser|passwd|login.*|libpam-modules.*'
left_out+='|libpam-runtime|libsemanage.*|libsepol.*|procps|libproc2.*|sysvinit-utils|init-system-helpers|netbase'
left_out+='|base-passwd|base-files|debianutils|gcc-.*-base|libc-l10n|libaudit-common|libdebconfclient0'
left_out+='|libsasl2-modules-db|readline-common|libncursesw6|libacl1|libattr1'
apt-get -qq -y --no-install-recommends --print-uris install \
  "postgresql-$PG_MAJOR" "postgresql-client-$PG_MAJOR" bash busybox gosu libc-bin locales xz-utils |
  sed -E "s/^'[^']*' ([^_]+)_.*/\1/" | grep -vE "^($left_out)\$" >"$work/packages"
(cd "$work/debs" && xargs apt-get -qq download <"$work/packages" >&2)
say "$(wc -l <"$work/packages") packages, $(du -sm "$work/debs" | cut -f1) MB, fetched"

r=$work/root
mkdir -p "$r"/usr/{bin,sbin,lib,lib64,local/bin} "$r"/{etc,proc,sys,dev,run/postgresql,root,docker-entrypoint-initdb.d}
mkdir -p "$r/var/lib/postgresql/data"
for d in bin sbin lib lib64; do ln -s usr/$d "$r/$d"; done
mkdir -m 1777 "$r/tmp" "$r/var/tmp"
ln -s /run "$r/var/run"
exclude=(--exclude=./usr/share/{doc,man,info,lintian,bug,locale,bash-completion,pixmaps}
  --exclude=./usr/lib/postgresql/*/lib/{bitcode,pgxs,llvmjit*} --exclude=./usr/lib/*-linux-gnu*/gconv
  --exclude=./etc/{cron*,init.d,logrotate.d,pam.d,systemd})
for f in "$work"/debs/*.deb; do
  dpkg-deb --fsys-tarfile "$f" | tar -x -C "$r" --keep-directory-symlink "${exclude[@]}"
done
printf '%s\n' root:x:0:0:root:/root:/bin/bash nobody:x:65534:65534::/:/bin/false \
  postgres:x:999:999::/var/lib/postgresql:/bin/bash >"$r/etc/passwd"
printf '%s\n' root:x:0: nogroup:x:65534: postgres:x:999: >"$r/etc/group"
printf '%s\n' 'passwd: files' 'group: files' 'hosts: files dns' >"$r/etc/nsswitch.conf"
# busybox stands in for every tool that no package brought.
chroot "$r" /usr/bin/busybox --install -s /usr/local/bin
for x in "$r"/usr/local/bin/*; do
  b=${x##*/}
  [ "$b" = busybox ] || [ -e "$r/usr/bin/$b" ] || [ -e "$r/usr/sbin/$b" ] || ln -s busybox "$r/usr/bin/$b"
done
rm -rf "$r"/usr/local/bin/*
ln -sf bash "$r/usr/bin/sh"
install -m 755 "$here/docker-entrypoint.sh" "$r/usr/local/bin/docker-entrypoint.sh"
sed -i "s/^#\?listen_addresses = .*/listen_addresses = '*'/" "$r/usr/share/postgresql/$PG_MAJOR/postgresql.conf.sample"
chroot "$r" /sbin/ldconfig
chroot "$r" /usr/bin/localedef -i en_US -c -f UTF-8 en_US.UTF-8
rm -rf "$r"/usr/share/i18n "$r"/usr/sbin/{zic,iconvconfig}
# Every program and library must find its libraries, or the list above is wrong.
missing=$(chroot "$r" /usr/bin/bash -c '
  for f in /usr/lib/postgresql/*/bin/* /usr/lib/postgresql/*/lib/*.so /usr/bin/bash /usr/bin/busybox; do
    ldd $f 2>&1 | sed "s|^|$f: |"
  done' | grep 'not found' || true)
[ -z "$missing" ] || die "libraries missing: $missing"
chroot "$r" "/usr/lib/postgresql/$PG_MAJOR/bin/postgres" --version >&2
chown -R 999:999 "$r/var/lib/postgresql" "$r/run/postgresql"
chmod 3777 "$r/run/postgresql"

# One layer, FROM scratch. (docker import would do as well, but it can't set the
# stop signal: with SIGTERM, "docker stop" waits for the clients to go.)
tar -C "$r" --numeric-owner -cf "$work/rootfs.tar" .
rm -rf "$r"
cat >"$work/Dockerfile" <<D
FROM scratch
ADD rootfs.tar /
ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/lib/postgresql/$PG_MAJOR/bin \\
    PG_MAJOR=$PG_MAJOR LANG=en_US.utf8 PGDATA=/var/lib/postgresql/data
VOLUME /var/lib/postgresql/data
EXPOSE 5432
STOPSIGNAL SIGINT
LABEL $label=$recipe
ENTRYPOINT ["docker-entrypoint.sh"]
CMD ["postgres"]
D
tar -C "$work" -c Dockerfile rootfs.tar | DOCKER_BUILDKIT=0 docker build -q --force-rm -t "$PG_IMAGE" - >&2
say "$PG_IMAGE made, $(docker image inspect -f '{{.Size}}' "$PG_IMAGE" | awk '{printf "%.0f MB", $1/1e6}')"
echo "$PG_IMAGE"
