# Adds a ctest entry for each instruction set of the other architecture that this machine can
# cross-compile for and emulate.

if(CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64)
  set(foreign aarch64)
  set(targets NEON SVE SVE_256 SVE2 SVE2_128)
else()
  set(foreign x86_64)
  set(targets SSSE3 SSE4 AVX2)
endif()
find_program(NEXAR_CROSS_CXX ${foreign}-linux-gnu-g++)
find_program(NEXAR_CROSS_QEMU qemu-${foreign})
find_path(NEXAR_CROSS_GTEST src/gtest-all.cc PATHS /usr/src/googletest/googletest NO_DEFAULT_PATH)

if(NEXAR_CROSS_CXX AND NEXAR_CROSS_QEMU AND NEXAR_CROSS_GTEST)
  foreach(target IN LISTS targets)
    add_test(NAME cross.${target}
             COMMAND "${PROJECT_SOURCE_DIR}/scripts/cross_test.sh" --build-dir
                     "${PROJECT_BINARY_DIR}/cross" ${target})
    set_tests_properties(cross.${target} PROPERTIES LABELS cross)
  endforeach()
else()
  message(STATUS "Skipping the tests for ${foreign}: they need ${foreign}-linux-gnu-g++, "
                 "qemu-${foreign} and /usr/src/googletest")
endif()
