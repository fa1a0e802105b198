#!/bin/sh
# Installs explain from a release: curl -fsSL https://github.com/nsys-llm/explain/releases/latest/download/install.sh | sh
#
#   EXPLAIN_VERSION=v1.0.0    that version instead of the newest
#   EXPLAIN_BIN=DIR           into this folder (default: ~/.local/bin)
#   EXPLAIN_FROM=PATH|URL     from this folder or address instead of GitHub: a mirror, or files that were copied
set -eu

fail() { echo "install.sh: $*" >&2; exit 1; }

main() {
  bin=${EXPLAIN_BIN:-$HOME/.local/bin}
  case $(uname -s) in
    Linux) os=linux ;;
    Darwin) os=darwin ;;
    *) fail "no archive for $(uname -s) here: on Windows take the zip file of https://github.com/nsys-llm/explain/releases" ;;
  esac
  case $(uname -m) in
    x86_64 | amd64) arch=amd64 ;;
    aarch64 | arm64) arch=arm64 ;;
    *) fail "no archive for $(uname -m): build it with Go: go install github.com/nsys-llm/explain/cmd/explain@latest" ;;
  esac
  version=${EXPLAIN_VERSION:-}
  from=${EXPLAIN_FROM:-https://github.com/nsys-llm/explain/releases}
  if [ -z "${EXPLAIN_FROM:-}" ]; then
    if [ -n "$version" ]; then from=$from/download/$version; else from=$from/latest/download; fi
  fi
  dir=$(mktemp -d)
  trap 'rm -rf "$dir"' EXIT
  fetch SHA256SUMS
  archive=$(sed -n "s/^[0-9a-f]* [ *]\(explain_${version:-v[0-9.]*}_${os}_$arch\.tar\.gz\)\$/\1/p" "$dir/SHA256SUMS")
  [ -n "$archive" ] || fail "$from has no archive of ${version:-a version} for $os/$arch"
  fetch "$archive"
  sum=$(cd "$dir" && if command -v sha256sum > /dev/null; then sha256sum "$archive"; else shasum -a 256 "$archive"; fi | cut -d ' ' -f 1)
  grep -q "^$sum [ *]$archive\$" "$dir/SHA256SUMS" || fail "$archive is not what SHA256SUMS says: nothing was installed"
  tar -xzf "$dir/$archive" -C "$dir" explain
  mkdir -p "$bin"
  mv "$dir/explain" "$bin/.explain.new"
  mv "$bin/.explain.new" "$bin/explain"
  "$bin/explain" --version
  case ":$PATH:" in
    *":$bin:"*) ;;
    *) echo "$bin is not on your PATH: export PATH=\"$bin:\$PATH\"" ;;
  esac
}

fetch() { # a file of the release
  case $from in
    *://*) curl -fsSL --retry 3 -o "$dir/$1" "$from/$1" || fail "cannot get $from/$1" ;;
    *) cp "$from/$1" "$dir/$1" || fail "cannot read $from/$1" ;;
  esac
}

main
