#!/usr/bin/env bash
# Installs a build into a scratch folder and uses it as an external project would.
#
#   install_test.sh shared|static|subdirectory SOURCE BUILD VERSION CXX
set -euo pipefail

way=$1 source=$2 build=$3 version=$4 cxx=$5
# The path is the same every time, so that ccache can reuse earlier results.
scratch=$build/install_test/$way
rm -rf "$scratch"
mkdir -p "$scratch"
trap 'rm -rf "$scratch"' EXIT

expect_version() {
  local answer
  answer=$("$1")
  if [ "$answer" != "$version" ]; then
    printf 'the consumer printed "%s" instead of "%s"\n' "$answer" "$version" >&2
    exit 1
  fi
}

# configure SOURCE BUILD OPTION...
configure() { cmake -S "$1" -B "$2" -G Ninja -DCMAKE_CXX_COMPILER="$cxx" "${@:3}"; }

# consume_with_cmake: builds and runs the external project against the tree in $scratch/prefix.
consume_with_cmake() {
  configure "$source/tests/house/consumer" "$scratch/consumer" -DCMAKE_PREFIX_PATH="$scratch/prefix"
  cmake --build "$scratch/consumer"
  expect_version "$scratch/consumer/consumer"
}

# consume_with_pkg_config: the same with one compile line.
consume_with_pkg_config() {
  local flags
  PKG_CONFIG_PATH=$(dirname "$(find "$scratch/prefix" -name nexar.pc)")
  export PKG_CONFIG_PATH
  read -ra flags < <(pkg-config --cflags --libs nexar)
  "$cxx" -std=c++20 "$source/tests/house/consumer/main.cpp" -o "$scratch/by-pkg-config" "${flags[@]}"
  LD_LIBRARY_PATH=$(pkg-config --variable=libdir nexar) expect_version "$scratch/by-pkg-config"
}

# shellcheck source=tests/house/readme_block.sh
source "$source/tests/house/readme_block.sh"

# run_readme_program: compiles the README's program as the README does and compares its output with
# the README's. Needs the PKG_CONFIG_PATH that consume_with_pkg_config exports.
run_readme_program() {
  readme_block "$source" cpp >"$scratch/first.cpp"
  # shellcheck disable=SC2046 # each flag is a separate word
  "$cxx" -std=c++20 "$scratch/first.cpp" $(pkg-config --cflags --libs nexar) -o "$scratch/first"
  diff <(readme_block "$source" text) <(LD_LIBRARY_PATH=$(pkg-config --variable=libdir nexar) "$scratch/prefix/bin/nexar" run -n 4 -- "$scratch/first")
}

case "$way" in
  shared)
    cmake --install "$build" --prefix "$scratch/prefix" >/dev/null
    consume_with_cmake
    consume_with_pkg_config
    run_readme_program
    ;;
  static)
    # A sibling of the tested build: relative paths are then the same in both, and ccache has every object already.
    tree=$(dirname "$build")/install_static
    trap 'rm -rf "$scratch" "$tree"' EXIT
    configure "$source" "$tree" -DBUILD_SHARED_LIBS=OFF -DCMAKE_BUILD_TYPE=Release \
      -DNEXAR_BUILD_TESTS=OFF -DNEXAR_BUILD_BENCH=OFF -DNEXAR_BUILD_EXAMPLES=OFF -DNEXAR_BUILD_TOOLS=OFF
    cmake --build "$tree"
    cmake --install "$tree" --prefix "$scratch/prefix" >/dev/null
    consume_with_cmake
    consume_with_pkg_config
    ;;
  subdirectory)
    configure "$source/tests/house/parent" "$scratch/build" -DNEXAR_SOURCE="$source" \
      -DCMAKE_CXX_COMPILER_LAUNCHER="$(command -v ccache || true)"
    cmake --build "$scratch/build" --target consumer
    expect_version "$scratch/build/consumer"
    ;;
  *)
    printf 'install_test.sh: "%s" is not one of shared, static and subdirectory\n' "$way" >&2
    exit 2
    ;;
esac
