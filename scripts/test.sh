#!/usr/bin/env bash
# From a fresh machine to a tested build: installs what is missing, builds the tests and runs those that
# need this machine alone. docs/testing.md says what the other labels run. Arguments go to ctest, for
# example -R wire.
set -euo pipefail
source "$(dirname "$0")/common.sh"

"$root/scripts/setup.sh" build test
build release all_tests
cd "$root"
exec ctest --preset release --parallel "$(nproc)" "$@"
