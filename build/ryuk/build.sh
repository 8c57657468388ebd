#!/usr/bin/env bash
# build.sh makes the image of the resource reaper that testcontainers-go starts
# beside its containers, from the Go program in this folder, so that no registry
# is needed. Prints the image's name on standard output.
set -Eeuo pipefail
RYUK_IMAGE=${RYUK_IMAGE:-localhost/testcontainers/ryuk:0.14.0} # the name that testcontainers-go v0.45 asks for
here=$(cd "$(dirname "$0")" && pwd)
label=verbatim.ryuk.recipe

digest() { if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi; }
recipe=$(cat "$here/build.sh" "$here/Dockerfile" "$here/main.go" "$here/docker.go" | digest | cut -c1-16)
have=$(docker image inspect -f "{{with .Config.Labels}}{{index . \"$label\"}}{{end}}" "$RYUK_IMAGE" 2>/dev/null || true)
if [ "$have" != "$recipe" ]; then
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  arch=$(docker version -f '{{.Server.Arch}}')
  (cd "$here" && GOWORK=off CGO_ENABLED=0 GOOS=linux GOARCH=$arch go build -trimpath -ldflags='-s -w' -o "$work/ryuk" .)
  cp "$here/Dockerfile" "$work/"
  docker build -q --label "$label=$recipe" -t "$RYUK_IMAGE" "$work" >&2
fi
echo "$RYUK_IMAGE"
