#!/usr/bin/env bash
# From a fresh machine to a tested build: installs missing packages, builds the tests and runs those that
# need only this machine. docs/testing.md describes the other labels. Arguments go to ctest, for example
# -R wire.
set -euo pipefail
source "$(dirname "$0")/common.sh"

"$root/scripts/setup.sh" build test
build release all_tests
cd "$root"
exec ctest --preset release --parallel "$(nproc)" "$@"
