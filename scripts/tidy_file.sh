#!/usr/bin/env bash
# Runs clang-tidy on one file of the release build, unless the same text, including its headers, has already passed the
# same checks on this machine.
#
#   scripts/tidy_file.sh FILE CHECKS
set -euo pipefail
cd "$(dirname "$0")/.."

file=$1 checks=$2
readonly tidy=clang-tidy-19
passed=${XDG_CACHE_HOME:-$HOME/.cache}/nexar-tidy

# Runs the file's compile command so that it prints everything clang-tidy depends on: comments, because of NOLINT, and
# macros.
preprocessed() {
  local command
  command=$(awk -v file="\"file\": \"$PWD/$file\"" '/"command":/ { seen = $0 } index($0, file) { print seen; exit }' \
    build/release/compile_commands.json)
  command=${command#*\"command\": \"}
  command=$(printf '%s' "${command%%\",}" | sed 's/\\\\/\\/g; s/\\"/"/g; s/ -o [^ ]* -c / -E -C -P -dD /')
  [ -n "$command" ] && (cd build/release && eval "$command")
}

# The nearest .clang-tidy of the file, or of the first source in a unity source.
config_of() {
  local folder
  folder=$(sed -n "s#^\#include \"$PWD/\(.*\)\"\$#\1#p" "$file" | head -1)
  folder=$(dirname "${folder:-$file}")
  while [ "$folder" != . ] && [ ! -e "$folder/.clang-tidy" ]; do folder=$(dirname "$folder"); done
  printf '%s/.clang-tidy' "$folder"
}

config=$(config_of)
key=$({ "$tidy" --version; cat .clang-tidy "$config"; printf '%s\n' "$file" "$checks"; preprocessed; } | sha256sum | cut -d ' ' -f 1)
[ ! -e "$passed/$key" ] || exit 0
"$tidy" -p build/release --quiet --config-file="$config" --checks="$checks" --extra-arg=-Wno-unknown-warning-option "$file" 2>/dev/null
mkdir -p "$passed"
: >"$passed/$key"
