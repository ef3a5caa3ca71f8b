#!/usr/bin/env bash
# Checks that the program in the README is identical to examples/first.cpp and prints the output that
# the README shows.
#
#   readme_test.sh SOURCE COMMAND...
#
# COMMAND starts the program as the README describes.
set -euo pipefail

source=$1
shift

# shellcheck source=tests/house/readme_block.sh
source "$source/tests/house/readme_block.sh"

diff <(readme_block "$source" cpp) "$source/examples/first.cpp"
diff <(readme_block "$source" text) <("$@")
