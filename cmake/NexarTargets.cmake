# Defines all targets of nexar: the same warnings and visibility for each, one target per layer.

include(GNUInstallDirs)

find_program(NEXAR_CCACHE ccache)
if(PROJECT_IS_TOP_LEVEL AND NEXAR_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${NEXAR_CCACHE}")
endif()

# A full build spends most of its time parsing the same headers again. A unity build parses them
# once for twelve sources. But changing one file then also recompiles its eleven neighbours, so the
# preset `dev` compiles every source separately.
option(NEXAR_UNITY_BUILD "Compile several sources at once" ON)

# Warnings, language level, sanitizers.
function(nexar_target_defaults target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${NEXAR_UNITY_BUILD}
                                             UNITY_BUILD_BATCH_SIZE 12)
  set_target_properties(
    ${target}
    PROPERTIES CXX_EXTENSIONS OFF
               CXX_VISIBILITY_PRESET hidden
               VISIBILITY_INLINES_HIDDEN ON
               POSITION_INDEPENDENT_CODE ON)
  target_compile_options(
    ${target}
    PRIVATE -Wall
            -Wextra
            -Wpedantic
            -Wshadow
            -Wconversion
            -Wsign-conversion
            -Wnon-virtual-dtor
            -Wold-style-cast
            # GCC 12 reports impossible overlaps in std::string (GCC bug 105651).
            $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>
            # A unity build includes every source in another file, where GCC warns about anonymous
            # namespaces.
            $<$<AND:$<CXX_COMPILER_ID:GNU>,$<BOOL:${NEXAR_UNITY_BUILD}>>:-Wno-subobject-linkage>
            $<$<BOOL:${NEXAR_WERROR}>:-Werror>)
  if(NEXAR_SANITIZE)
    target_compile_options(
      ${target} PRIVATE -fsanitize=${NEXAR_SANITIZE} -fno-sanitize-recover=all
                        -fno-omit-frame-pointer)
    target_link_options(${target} PRIVATE -fsanitize=${NEXAR_SANITIZE})
  endif()
endfunction()

# nexar_layer(base SOURCES a.cpp ... DEPENDS lower... LIBRARIES fmt::fmt ...)
#
# Adds the static library nexar_<name> for tests and tools in this repository, and adds its objects
# to the library that users link.
function(nexar_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPENDS;LIBRARIES")
  set(target nexar_${name})
  add_library(${target} STATIC ${arg_SOURCES})
  nexar_target_defaults(${target})
  target_include_directories(${target} PUBLIC "${PROJECT_SOURCE_DIR}/include"
                                              "${PROJECT_SOURCE_DIR}/src")
  list(TRANSFORM arg_DEPENDS PREPEND nexar_)
  target_link_libraries(${target} PUBLIC ${arg_DEPENDS} ${arg_LIBRARIES})
  set_property(GLOBAL APPEND PROPERTY NEXAR_LAYERS ${target})
  set_property(GLOBAL APPEND PROPERTY NEXAR_LIBRARIES ${arg_LIBRARIES})
endfunction()

# Code whose speed does not matter, such as tests and the parsing of command lines: -O1 compiles it in
# two thirds of the time.
function(nexar_quick_to_compile target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()
function(nexar_test_code target)
  nexar_quick_to_compile(${target})
endfunction()

# nexar_program(name SOURCES ... DEPENDS layers... LIBRARIES ...): adds a program, in bin/.
function(nexar_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPENDS;LIBRARIES")
  add_executable(${name} ${arg_SOURCES})
  nexar_target_defaults(${name})
  list(TRANSFORM arg_DEPENDS PREPEND nexar_)
  target_link_libraries(${name} PRIVATE ${arg_DEPENDS} ${arg_LIBRARIES})
endfunction()
