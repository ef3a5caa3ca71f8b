# The dependencies of nexar. Debian has packages of all of them; scripts/setup.sh installs them.

find_package(Threads REQUIRED)
find_package(fmt 9 REQUIRED)
find_package(tomlplusplus 3.3 REQUIRED)

# For these, Debian ships only pkg-config files.
find_package(PkgConfig REQUIRED)
pkg_check_modules(hwy REQUIRED IMPORTED_TARGET libhwy>=1.0.3)
pkg_check_modules(gnutls REQUIRED IMPORTED_TARGET gnutls>=3.7.9)
pkg_check_modules(crypto REQUIRED IMPORTED_TARGET libcrypto>=3.0)
pkg_check_modules(nettle REQUIRED IMPORTED_TARGET nettle>=3.8)
pkg_check_modules(ngtcp2 REQUIRED IMPORTED_TARGET libngtcp2>=1.11 libngtcp2_crypto_gnutls>=1.11)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash>=0.8)
pkg_check_modules(isal REQUIRED IMPORTED_TARGET libisal>=2.30)

if(NEXAR_BUILD_TOOLS OR NEXAR_BUILD_BENCH)
  find_package(CLI11 2.1 REQUIRED)
  find_package(nlohmann_json 3.11 REQUIRED)
endif()
if(NEXAR_BUILD_BENCH)
  # TLS over TCP, for comparison with the QUIC link.
  pkg_check_modules(ssl REQUIRED IMPORTED_TARGET libssl>=3.0)
endif()
if(NEXAR_BUILD_TESTS)
  find_package(GTest 1.12 REQUIRED)
endif()
