#!/usr/bin/env bash
# gofmt, go vet and staticcheck over the whole module.
set -euo pipefail
bad=$(gofmt -l $(git ls-files '*.go'))
if [ -n "$bad" ]; then
  echo "gofmt is needed for:" >&2
  echo "$bad" >&2
  exit 1
fi
go vet -p 2 ./...
GOFLAGS=-buildvcs=false go run -p 2 honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...
echo "lint: ok"
