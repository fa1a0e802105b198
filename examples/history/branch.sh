#!/usr/bin/env bash
# Keeps the history in a branch of its own, which has one commit with one file, history.db. Jobs that push at the same time
# lose nothing: who comes second merges and tries again.
#
#   branch.sh add REPORT… --commit SHA        what explain history add takes, but for --store
#   branch.sh get FILE                        a copy, for explain gate --history FILE
#
# HISTORY_BRANCH (default explain-history) and HISTORY_REMOTE (default origin) say where it is. To be run in the checkout.
set -euo pipefail
branch=${HISTORY_BRANCH:-explain-history} remote=${HISTORY_REMOTE:-origin}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# get FILE: the branch's history, if there is one; prints the commit that the branch is at.
get() {
  local at
  at=$(git ls-remote "$remote" "refs/heads/$branch" | cut -f1) || return
  if [ -n "$at" ]; then # an error must not look like a history without runs: it would replace the branch
    git fetch --quiet --depth 1 "$remote" "$at" || return
    git cat-file blob "$at:history.db" > "$1" || return
  fi
  echo "$at"
}

command=${1:-}
[ $# -ge 2 ] || { sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }
shift
case $command in
get) get "$1" > /dev/null ;;
add)
  explain history add "$@" --store "$dir/new.db"
  for try in 1 2 3 4 5 6 7 8; do
    rm -f "$dir/history.db"
    at=$(get "$dir/history.db") || { sleep "$try"; continue; }
    explain history merge "$dir/new.db" --store "$dir/history.db"
    tree=$(printf '100644 blob %s\thistory.db\n' "$(git hash-object -w "$dir/history.db")" | git mktree)
    commit=$(git commit-tree "$tree" -m "History of explain")
    if git push --quiet --force-with-lease="refs/heads/$branch:$at" "$remote" "$commit:refs/heads/$branch"; then
      exit 0
    fi
    sleep "$try"
  done
  echo "the branch $branch could not be read or pushed: may this job write to it?" >&2
  exit 3
  ;;
*) sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
