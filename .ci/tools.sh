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
