#!/usr/bin/env bash
# Runs the compute tests for instruction sets that this machine lacks, under qemu's user-mode emulation.
#
#   scripts/cross_test.sh [--build-dir DIR] [TARGET...]
#
# TARGET: NEON SVE SVE_256 SVE2 SVE2_128 (aarch64) or SSSE3 SSE4 AVX2 (x86_64); by default, all targets
# of the architecture that this machine does not have. `scripts/setup.sh cross` installs the tools.
set -euo pipefail
source "$(dirname "$0")/common.sh"

arch_of() {
  case $1 in
    NEON | SVE | SVE_256 | SVE2 | SVE2_128) echo aarch64 ;;
    SSSE3 | SSE4 | AVX2) echo x86_64 ;;
    *) fail "unknown target '$1'; the targets are NEON SVE SVE_256 SVE2 SVE2_128 SSSE3 SSE4 AVX2" ;;
  esac
}

# The CPUs to emulate for a target. SVE code must work with vectors of any length, here given in
# bytes: 16 is the shortest, 256 the longest.
cpus_of() {
  local length='max,sve-default-vector-length'
  case $1 in
    NEON) echo cortex-a72 ;;
    SVE | SVE2) echo "$length=16 $length=32 $length=64 $length=256" ;;
    SVE_256) echo "$length=32" ;;
    SVE2_128) echo "$length=16" ;;
    *) echo max ;;
  esac
}

check_tools() { # arch
  local tool
  for tool in "$1-linux-gnu-g++" "qemu-$1"; do
    command -v "$tool" >/dev/null || fail "$tool is missing; scripts/setup.sh cross installs it"
  done
  [ -d /usr/src/googletest ] ||
    fail "/usr/src/googletest is missing; scripts/setup.sh cross installs it"
}

build_tests() { # arch target
  local launcher
  launcher=$(command -v ccache || true)
  mkdir -p "$build_dir"
  (
    flock 9 # ctest may run several of these scripts at once
    quietly "cross-configure-$1" cmake -S "$root/tests/cross" -B "$build_dir/$1" -G Ninja \
      --toolchain "$root/tests/cross/$1.cmake" -DCMAKE_BUILD_TYPE=Release \
      -DCMAKE_CXX_FLAGS_RELEASE=-O2 "-DCMAKE_CXX_COMPILER_LAUNCHER=$launcher"
    quietly "cross-build-$2" cmake --build "$build_dir/$1" --target "compute_tests_$2"
  ) 9>"$build_dir/lock"
}

run_tests() { # arch target cpu
  local filter='*'
  # Only x86 streams results past the caches, and its test takes long.
  [ "$1" = x86_64 ] || filter='-*much_larger_than_the_caches*'
  # Less random data: emulation is slow, and the full amount runs natively.
  NEXAR_TEST_TARGET=$2 NEXAR_TEST_VOLUME=${NEXAR_TEST_VOLUME:-3} \
    quietly "cross-run-$2" "qemu-$1" -cpu "$3" "$build_dir/$1/compute_tests_$2" \
    --gtest_brief=1 "--gtest_filter=$filter"
  local passed
  passed=$(grep -E '^\[  PASSED  \] [1-9][0-9]* test' "$root/build/logs/cross-run-$2.log") ||
    fail "$2 on $3: no test ran"
  say "$2 on $3: $passed"
}

build_dir=$root/build/cross
if [ "${1:-}" = --build-dir ]; then
  build_dir=${2:?--build-dir needs a directory}
  shift 2
fi
targets=("$@")
if [ $# -eq 0 ]; then
  case $(uname -m) in
    x86_64) targets=(NEON SVE SVE_256 SVE2 SVE2_128) ;;
    aarch64) targets=(SSSE3 SSE4 AVX2) ;;
    *) fail "there are no default targets for a machine of type $(uname -m); name one" ;;
  esac
fi
for target in "${targets[@]}"; do
  arch=$(arch_of "$target")
  check_tools "$arch"
  build_tests "$arch" "$target"
  read -ra cpus <<<"$(cpus_of "$target")"
  for cpu in "${cpus[@]}"; do run_tests "$arch" "$target" "$cpu"; done
done
