#!/usr/bin/env bash
# The program in the README is examples/first.cpp to the letter, and prints what the README says.
#
#   readme_test.sh SOURCE COMMAND...
#
# COMMAND starts the program as the README says.
set -euo pipefail

source=$1
shift

# shellcheck source=tests/house/readme_block.sh
source "$source/tests/house/readme_block.sh"

diff <(readme_block "$source" cpp) "$source/examples/first.cpp"
diff <(readme_block "$source" text) <("$@")
