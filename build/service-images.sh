#!/usr/bin/env bash
# service-images.sh: compiles the three programs for the Docker engine's platform
# and makes an image of each that holds nothing else, named
# $VERBATIM_IMAGES/{verbatim,ingest,auditview}:$VERBATIM_TAG.
set -Eeuo pipefail
prefix=${VERBATIM_IMAGES:-localhost/verbatim}
tag=${VERBATIM_TAG:-dev}
root=$(cd "$(dirname "$0")/.." && pwd)
docker info >/dev/null 2>&1 || { echo "service-images: the Docker engine does not answer; start it" >&2; exit 1; }

# Only what an image needs is sent to the engine.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
arch=$(docker version -f '{{.Server.Arch}}')
image() {
  local name=$1 package=$2
  (cd "$root" && CGO_ENABLED=0 GOOS=linux GOARCH=$arch go build -trimpath -buildvcs=false -ldflags='-s -w' -o "$work/bin/$name" "$package")
  docker build -q -f "$root/deploy/$name.Dockerfile" -t "$prefix/$name:$tag" "$work" >/dev/null
  echo "$prefix/$name:$tag"
}
image verbatim ./cmd/verbatim
image ingest ./services/ingest/cmd/ingest
image auditview ./services/auditview/cmd/auditview
