#!/usr/bin/env bash
# Prints every sentence that users see (errors, log lines, help, printed text) in one list, grouped by file, for review.
#
#   messages.sh [SOURCE [FOLDER...]]
#
# FOLDER is relative to SOURCE; without, all of include, src and tools.
set -euo pipefail

house=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source=$(cd "${1:-$house/../..}" && pwd)
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- include src tools

cd "$source"
find "$@" -type f \( -name '*.hpp' -o -name '*.cpp' \) -print0 | LC_ALL=C sort -z |
  LC_ALL=C xargs -0 awk -v mode=list -f "$house/sentences.awk"
