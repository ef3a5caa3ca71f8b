# Tests: one program per layer, named after it; tests that use threads go into a program of their own
# with the label `concurrent`, which is what runs under ThreadSanitizer in CI. Slow ones carry the
# label `soak` and run only when asked for: ctest -L soak.

include(GoogleTest)

add_custom_target(concurrent_tests COMMENT "All programs with the label concurrent")

# nexar_test(name SOURCES ... DEPENDS layers... LIBRARIES ... LABELS ...)
function(nexar_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPENDS;LIBRARIES;LABELS")
  nexar_program(${name} SOURCES ${arg_SOURCES} DEPENDS ${arg_DEPENDS} LIBRARIES GTest::gmock
                GTest::gtest_main ${arg_LIBRARIES})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  if("concurrent" IN_LIST arg_LABELS)
    add_dependencies(concurrent_tests ${name})
  endif()
  gtest_discover_tests(
    ${name}
    TEST_PREFIX ${name}.
    DISCOVERY_MODE PRE_TEST
    PROPERTIES LABELS "${arg_LABELS}")
endfunction()
