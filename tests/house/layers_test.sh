#!/usr/bin/env bash
# Adds forbidden includes to a copy of the tree, one at a time. The layer check must report each of
# them and accept the unchanged tree.
#
#   layers_test.sh SOURCE
set -euo pipefail

source=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cp -r "$source/include" "$source/src" "$scratch"

check() { "$source/scripts/check_layers.sh" "$scratch" 2>&1; }

if ! answer=$(check); then
  printf 'the check rejects the unchanged tree:\n%s\n' "$answer" >&2
  exit 1
fi

# plant FILE INCLUDE EXPECTED: appends the include to the file; the check must fail with the
# expected message.
plant() {
  local file=$scratch/$1 answer
  mkdir -p "$(dirname "$file")"
  [ ! -f "$file" ] || cp "$file" "$scratch/saved"
  printf '#include %s\n' "$2" >>"$file"
  if answer=$(check); then
    printf 'the check accepted %s in %s\n' "$2" "$1" >&2
    exit 1
  fi
  if ! grep -qF -- "$3" <<<"$answer"; then
    printf 'for %s in %s the check printed\n%s\ninstead of\n%s\n' "$2" "$1" "$answer" "$3" >&2
    exit 1
  fi
  if [ -f "$scratch/saved" ]; then mv "$scratch/saved" "$file"; else rm "$file"; fi
}

plant src/base/error.cpp '"wire/frame.hpp"' 'src/base includes "wire/frame.hpp" from the higher layer src/wire'
plant src/wire/planted.hpp '"engine/matcher.hpp"' 'src/wire includes "engine/matcher.hpp" from the higher layer src/engine'
plant src/base/error.cpp '"../wire/frame.hpp"' 'is relative'
plant src/base/error.cpp '"assert.hpp"' 'is relative'
plant src/base/error.cpp '"misc/thing.hpp"' 'is not in any layer'
plant include/nexar/error.hpp '"base/assert.hpp"' 'a public header includes "base/assert.hpp"'
plant include/nexar/error.hpp '<fmt/format.h>' 'a public header includes <fmt/format.h>'
plant src/runtime/node.cpp '"link/quic/endpoint.hpp"' 'only src/link may include one kind of link'
plant src/misc/thing.hpp '<vector>' 'src/misc is not in src/LAYERS'

check >/dev/null
printf 'the check found all planted includes\n'
