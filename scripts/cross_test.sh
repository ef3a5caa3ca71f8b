#!/bin/sh
# Runs the compute tests for instruction sets that this machine lacks, under qemu's user emulation.
#
#   scripts/cross_test.sh [--build-dir DIR] [TARGET...]
#
# TARGET: NEON SVE SVE_256 SVE2 SVE2_128 (aarch64) or SSSE3 SSE4 AVX2 (x86_64); without one, all of
# the architecture that this machine is not. Needs the packages qemu-user, googletest and
# g++-aarch64-linux-gnu or g++-x86-64-linux-gnu.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
build=$root/build/cross

fail() {
    echo "cross_test: $*" >&2
    exit 1
}

need() {
    command -v "$1" >/dev/null || fail "$1 is missing; install the package $2"
}

arch_of() {
    case $1 in
        NEON | SVE | SVE_256 | SVE2 | SVE2_128) echo aarch64 ;;
        SSSE3 | SSE4 | AVX2) echo x86_64 ;;
        *) fail "unknown target $1; known: NEON SVE SVE_256 SVE2 SVE2_128 SSSE3 SSE4 AVX2" ;;
    esac
}

# The CPUs to emulate for a target. SVE code must work with vectors of any length, here given in
# bytes: 16 is the shortest there is, 256 the longest.
cpus_of() {
    case $1 in
        NEON) echo cortex-a72 ;;
        SVE | SVE2)
            for bytes in 16 32 64 256; do echo "max,sve-default-vector-length=$bytes"; done
            ;;
        SVE_256) echo max,sve-default-vector-length=32 ;;
        SVE2_128) echo max,sve-default-vector-length=16 ;;
        *) echo max ;;
    esac
}

build_tests() { # arch target
    need "$1-linux-gnu-g++" "g++-$(echo "$1" | tr _ -)-linux-gnu"
    need "qemu-$1" qemu-user
    [ -d /usr/src/googletest/googletest ] ||
        fail "/usr/src/googletest is missing; install the package googletest"
    launcher=$(command -v ccache || true)
    mkdir -p "$build"
    (
        # Several of these scripts may run at once, by ctest for example.
        flock 9
        cmake -S "$root/tests/cross" -B "$build/$1" -G Ninja \
            --toolchain "$root/tests/cross/$1.cmake" -DCMAKE_BUILD_TYPE=Release \
            -DCMAKE_CXX_FLAGS_RELEASE=-O2 "-DCMAKE_CXX_COMPILER_LAUNCHER=$launcher"
        cmake --build "$build/$1" --target "compute_tests_$2"
    ) 9>"$build/$1.lock" >"$build/$2.log" 2>&1 || {
        cat "$build/$2.log" >&2
        fail "$2: the tests do not build"
    }
}

run_tests() { # arch target cpu
    echo "== $2 on $3"
    # Results are streamed past the caches on x86 only.
    filter='*'
    [ "$1" = x86_64 ] || filter='-*much_larger_than_the_caches*'
    # A part of the random volume: emulation is slow, and the full volume runs natively.
    NEXAR_TEST_TARGET=$2 NEXAR_TEST_VOLUME=${NEXAR_TEST_VOLUME:-3} \
        "qemu-$1" -cpu "$3" "$build/$1/compute_tests_$2" "--gtest_filter=$filter" --gtest_brief=1 \
        >"$build/$2.out" 2>&1 || {
        cat "$build/$2.out" >&2
        fail "$2 on $3: tests failed"
    }
    grep -E '^\[  PASSED  \] [1-9][0-9]* test' "$build/$2.out" ||
        fail "$2 on $3: no test ran"
}

if [ "${1:-}" = --build-dir ]; then
    [ $# -ge 2 ] || fail "--build-dir needs a directory"
    build=$2
    shift 2
fi
if [ $# -eq 0 ]; then
    case $(uname -m) in
        x86_64) set -- NEON SVE SVE_256 SVE2 SVE2_128 ;;
        aarch64) set -- SSSE3 SSE4 AVX2 ;;
        *) fail "no targets are known to test on $(uname -m)" ;;
    esac
fi
for target; do
    arch=$(arch_of "$target")
    build_tests "$arch" "$target"
    for cpu in $(cpus_of "$target"); do run_tests "$arch" "$target" "$cpu"; done
done
