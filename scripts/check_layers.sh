#!/usr/bin/env bash
# Fails if a folder includes one that comes after it in src/LAYERS, if code outside src/link includes
# one kind of link (except src/chaos, which needs the simulator), or if a public header includes
# anything but the standard library and other public headers.
#
#   scripts/check_layers.sh [ROOT]     ROOT: the tree to check; default: this one
set -euo pipefail
source "$(dirname "$0")/common.sh"
cd "${1:-$root}"

[ -r src/LAYERS ] || fail "there is no src/LAYERS below $PWD"

# shellcheck disable=SC2016  # awk's own $0
find include src -type f \( -name '*.hpp' -o -name '*.cpp' \) -print0 | sort -z | xargs -0 awk '
  function complain(text) {
    printf "%s:%d: %s\n", FILENAME, FNR, text
    bad = 1
  }
  # "src/link/quic/x.cpp" -> "src/link", "include/nexar/x.hpp" -> "include/nexar"
  function layer_of(path,   parts) {
    split(path, parts, "/")
    return parts[1] "/" parts[2]
  }
  BEGIN {
    while ((getline line < "src/LAYERS") > 0) {
      if (line !~ /^#/ && line != "") order[line] = ++layers
    }
  }
  FNR == 1 {
    layer = layer_of(FILENAME)
    if (!(layer in order)) complain(layer " is not in src/LAYERS")
  }
  /^[ \t]*#[ \t]*include[ \t]*"/ {
    split($0, quoted, "\"")
    target = quoted[2]
    if (layer == "include/nexar") {
      complain("a public header includes \"" target "\"; it may include only std and <nexar/...>")
    } else if (target ~ /\.\./ || target !~ /\//) {
      complain("\"" target "\" is relative; write the path from src/, as in \"base/assert.hpp\"")
    } else {
      wanted = layer_of("src/" target)
      if (!(wanted in order)) complain("\"" target "\" is not in any layer of src/LAYERS")
      else if (order[wanted] > order[layer]) complain(layer " includes \"" target "\" from the higher layer " wanted)
      else if (layer != "src/link" && layer != "src/chaos" && target ~ /^link\/[a-z]+\// && target !~ /^link\/common\//)
        complain("only src/link may include one kind of link; use port::Carrier and \"link/carriers.hpp\" instead of \"" target "\"")
    }
  }
  /^[ \t]*#[ \t]*include[ \t]*</ && layer == "include/nexar" {
    match($0, /<[^>]*>/)
    target = substr($0, RSTART + 1, RLENGTH - 2)
    # Standard headers have neither a folder nor a suffix; only asio.hpp may include Asio.
    if (target !~ /^nexar\// && target ~ /[\/.]/ && FILENAME != "include/nexar/asio.hpp")
      complain("a public header includes <" target ">; it may include only std and <nexar/...>")
  }
  END { exit bad }
' >&2
