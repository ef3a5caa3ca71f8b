# The install tree: library, public headers, CMake package, pkg-config file.

include(CMakePackageConfigHelpers)

get_target_property(type nexar TYPE)
if(type STREQUAL "STATIC_LIBRARY")
  set(NEXAR_IS_STATIC ON)
  set(NEXAR_PC_CFLAGS "-DNEXAR_STATIC")
  set(NEXAR_PC_REQUIRES "fmt libhwy gnutls libcrypto nettle libngtcp2 libngtcp2_crypto_gnutls libxxhash libisal")
else()
  set(NEXAR_IS_STATIC OFF)
  set(NEXAR_PC_CFLAGS "")
  set(NEXAR_PC_REQUIRES "")
endif()

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/nexar")

install(TARGETS nexar EXPORT nexar-targets)
install(
  DIRECTORY "${PROJECT_SOURCE_DIR}/include/nexar"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  FILES_MATCHING
  PATTERN "*.hpp")
install(
  EXPORT nexar-targets
  NAMESPACE nexar::
  DESTINATION "${package_dir}")

configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/nexar-config.cmake.in" "${PROJECT_BINARY_DIR}/nexar-config.cmake"
  INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/nexar-config-version.cmake"
                                 COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/nexar-config.cmake"
              "${PROJECT_BINARY_DIR}/nexar-config-version.cmake" DESTINATION "${package_dir}")

# The pkg-config file derives its prefix from its own location, so that an installed tree can be
# moved.
cmake_path(ABSOLUTE_PATH CMAKE_INSTALL_LIBDIR BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}"
           OUTPUT_VARIABLE libdir)
cmake_path(APPEND libdir "pkgconfig" OUTPUT_VARIABLE pc_dir)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY "${pc_dir}"
           OUTPUT_VARIABLE NEXAR_PC_TO_PREFIX)
configure_file("${PROJECT_SOURCE_DIR}/cmake/nexar.pc.in" "${PROJECT_BINARY_DIR}/nexar.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/nexar.pc"
        DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
