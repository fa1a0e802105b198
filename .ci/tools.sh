# shellcheck shell=bash
# Sourced: tool PACKAGE VERSION prints the path of a program that Go installs, into a cache the first time.
tool() {
  local dir="${EXPLAIN_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/explain-ci}/${1##*/}@$2"
  if [ ! -x "$dir/${1##*/}" ]; then
    mkdir -p "$dir"
    GOBIN="$dir" GOFLAGS='' go install "$1@$2" >&2
  fi
  echo "$dir/${1##*/}"
}

# axe prints the path of the script that checks pages for accessibility, or nothing where npm cannot fetch it.
axe() {
  local version=4.14.1 dir
  dir="${EXPLAIN_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/explain-ci}/axe-core@$version"
  if [ ! -s "$dir/package/axe.min.js" ]; then
    command -v npm >/dev/null || return 0
    mkdir -p "$dir"
    (cd "$dir" && npm pack --silent "axe-core@$version" >/dev/null 2>&1 && tar xzf axe-core-*.tgz) || return 0
  fi
  echo "$dir/package/axe.min.js"
}
