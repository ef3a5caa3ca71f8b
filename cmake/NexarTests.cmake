# Tests: one program per layer, named after it. Tests that use threads go into a separate program
# with the label `concurrent`, which CI runs under ThreadSanitizer. docs/testing.md says which
# labels run where.
#
# ctest starts a program once, or once per shard: a process per case would take more time than the
# cases themselves. ISOLATED is for programs whose cases must not share a process.

include(GoogleTest)

add_custom_target(all_tests COMMENT "Building everything that the default tests run")
add_custom_target(concurrent_tests COMMENT "Building all programs with the label concurrent")

# Registers the cases of a program with ctest, one entry per shard. GoogleTest deals cases to shards
# in turn, so that neighbours, which often take about the same time, go to different ones.
function(nexar_register_shards name shards labels)
  foreach(shard RANGE 1 ${shards})
    set(test ${name})
    if(shards GREATER 1)
      set(test ${name}.${shard})
    endif()
    math(EXPR index "${shard} - 1")
    add_test(NAME ${test} COMMAND ${name} --gtest_brief=1)
    set_tests_properties(
      ${test} PROPERTIES LABELS "${labels}" ENVIRONMENT
                         "GTEST_TOTAL_SHARDS=${shards};GTEST_SHARD_INDEX=${index}")
  endforeach()
endfunction()

# nexar_test(name [ISOLATED] [OPTIMIZED] [SHARDS n] SOURCES ... DEPENDS layers... LIBRARIES ... LABELS ...)
#
# OPTIMIZED is for tests that do heavy computation themselves. Under sanitizers all other test programs are
# compiled with -O0, because the optimizer spends minutes on the code that sanitizers add to assertions.
function(nexar_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "ISOLATED;OPTIMIZED" "SHARDS" "SOURCES;DEPENDS;LIBRARIES;LABELS")
  nexar_program(${name} SOURCES ${arg_SOURCES} DEPENDS ${arg_DEPENDS} LIBRARIES GTest::gmock
                GTest::gtest_main ${arg_LIBRARIES})
  nexar_test_code(${name})
  if(NEXAR_SANITIZE AND NOT arg_OPTIMIZED)
    target_compile_options(${name} PRIVATE -O0)
  endif()
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  if("concurrent" IN_LIST arg_LABELS)
    add_dependencies(concurrent_tests ${name})
  endif()
  if(NOT "soak" IN_LIST arg_LABELS)
    add_dependencies(all_tests ${name})
  endif()
  if("soak" IN_LIST arg_LABELS)
    nexar_register_shards(${name} 1 "${arg_LABELS}")
    set_tests_properties(${name} PROPERTIES TIMEOUT 86400)
    return()
  endif()
  if(arg_ISOLATED)
    gtest_discover_tests(
      ${name}
      TEST_PREFIX ${name}.
      DISCOVERY_MODE PRE_TEST
      PROPERTIES LABELS "${arg_LABELS}")
    return()
  endif()
  if(NOT arg_SHARDS)
    set(arg_SHARDS 1)
  endif()
  nexar_register_shards(${name} ${arg_SHARDS} "${arg_LABELS}")
endfunction()
