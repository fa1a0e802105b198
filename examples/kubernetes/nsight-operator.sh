#!/bin/sh
# The Nsight Operator leaves a report for each profiled process below one folder for each session. This lists those of a session for explain partial,
# analyses them one after the other, and merges them: nsys has to be on PATH, for it exports the .nsys-rep files.
#
#   examples/kubernetes/nsight-operator.sh /nsight/reports/SESSION report/
set -eu

session="${1:?name the folder of a session}"
out="${2:?name the folder of the report}"
parts="$out.parts"
mkdir -p "$parts"
find "$session" -name '*.nsys-rep' -o -name '*.sqlite' | sort >"$parts/manifest.txt"
n=$(wc -l <"$parts/manifest.txt")
i=0
while [ "$i" -lt "$n" ]; do
  explain partial --index "$i" --of "$parts/manifest.txt" --out "$parts" --resume
  i=$((i + 1))
done
explain merge "$parts" --out "$out"
