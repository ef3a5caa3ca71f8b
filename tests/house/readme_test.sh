#!/usr/bin/env bash
# The program in the README is examples/first.cpp to the letter, and prints what the README says.
#
#   readme_test.sh SOURCE COMMAND...
#
# COMMAND starts the program as the README says.
set -euo pipefail

source=$1
shift

# block LANGUAGE: the first fenced block of that language in the README.
block() { sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/p" "$source/README.md" | sed '1d;/^```$/,$d'; }

diff <(block cpp) "$source/examples/first.cpp"
diff <(block text) <("$@")
