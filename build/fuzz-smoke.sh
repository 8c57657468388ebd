#!/usr/bin/env bash
# fuzz-smoke.sh DIRECTORY...: runs each fuzz target below the directories for
# $FUZZTIME (5 seconds). An input that fails is left in the package's testdata.
set -Eeuo pipefail
count=0
while IFS=: read -r file line; do
  target=$(sed -E 's/^func (Fuzz[A-Za-z0-9_]*)\(.*/\1/' <<<"$line")
  go test -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-5s}" "./$(dirname "$file")"
  count=$((count + 1))
done < <(grep -rH --include='*_test.go' '^func Fuzz' "$@" | sort)
echo "fuzz-smoke: $count targets ran"
