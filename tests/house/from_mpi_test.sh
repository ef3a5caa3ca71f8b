#!/usr/bin/env bash
# Every expression in the right column of the tables in docs/from-mpi.md compiles.
#
#   from_mpi_test.sh COMPILER SOURCE
set -euo pipefail
compiler=$1
source=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# The expressions between backticks in the last cell of each row.
# shellcheck disable=SC2016 # these are the backticks of Markdown
expressions() {
  grep '^| ' "$source/docs/from-mpi.md" | grep -v '^| MPI ' | sed -E 's/^.* \| ([^|]*) \|$/\1/' | grep -oE '`[^`]+`' | tr -d '`'
}

{
  cat <<'CODE'
#include <nexar/nexar.hpp>

void check(nexar::Node& node, std::vector<nexar::Prepared<void>>& prepared) {
    const nexar::Communicator world = node.world();
    std::vector<double> in, out, all;
    double value = 0;
    int root = 0, to = 0, from = 0;
    std::vector<int> counts, displacements;
    std::vector<nexar::Work<>> works(2);
CODE
  while read -r expression; do printf '    static_cast<void>(%s);\n' "$expression"; done < <(expressions)
  echo '}'
} >"$scratch/check.cpp"

count=$(grep -c static_cast "$scratch/check.cpp")
if [ "$count" -lt 80 ]; then
  printf 'found only %s expressions in docs/from-mpi.md\n' "$count" >&2
  exit 1
fi
"$compiler" -std=c++20 -Wall -Wextra -Werror -fsyntax-only -I"$source/include" "$scratch/check.cpp"
