#!/usr/bin/env bash
# Each file in mistakes/ makes one mistake. Its first comment is the sentence that the compiler must
# print first, instead of a page of template names.
#
#   mistakes_test.sh COMPILER SOURCE_DIRECTORY
set -euo pipefail
compiler=$1
source_dir=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Precompile the header once: g++ uses it if it comes first in the include path, other compilers
# ignore it.
mkdir "$scratch/nexar"
"$compiler" -std=c++20 -Wall -Wextra -I"$source_dir/include" -x c++-header "$source_dir/include/nexar/nexar.hpp" \
  -o "$scratch/nexar/nexar.hpp.gch" 2>/dev/null || true

first_message() {
  "$compiler" -std=c++20 -Wall -Wextra -fsyntax-only -fdiagnostics-color=never -fmessage-length=0 -I"$scratch" \
    -I"$source_dir/include" "$1" 2>&1 |
    grep -m1 -E '(error|warning):' || true
}

check() {
  local file=$1 want kind sentence said
  want=$(sed -n '\|^//|!q; s|^// ||p' "$file" | paste -sd ' ')
  kind=${want%%: *}
  sentence=${want#*: }
  said=$(first_message "$file")
  if [[ $file == */none.cpp ]]; then
    [[ -z $said ]] && return
  elif [[ $said == *"$kind:"*"$sentence"* ]]; then
    return
  fi
  printf '%s: expected "%s", but the first message of the compiler is:\n  %s\n' "$file" "$want" "${said:-nothing}"
  return 1
}

for file in "$source_dir"/tests/house/mistakes/*.cpp; do
  { check "$file" || touch "$scratch/failed"; } &
  (($(jobs -rp | wc -l) < $(nproc))) || wait -n
done
wait
[ ! -e "$scratch/failed" ]
