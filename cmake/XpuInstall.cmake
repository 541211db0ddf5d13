# What is installed, and how others find it: CMake package xpu (from the build tree too) and pkg-config file xpu.pc.

include(CMakePackageConfigHelpers)

set(xpu_package_folder "${CMAKE_INSTALL_LIBDIR}/cmake/xpu")
# The same layout under the build folder, so that CMAKE_PREFIX_PATH may name either.
set(xpu_build_package_folder "${PROJECT_BINARY_DIR}/lib/cmake/xpu")

# In a wheel, which scikit-build-core makes, the library is there once, as libxpu.so.0.
set(xpu_namelink "")
if(DEFINED SKBUILD)
  set(xpu_namelink NAMELINK_SKIP)
endif()

install(TARGETS xpu EXPORT xpuTargets
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" ${xpu_namelink}
  FILE_SET HEADERS DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
get_property(xpu_modules GLOBAL PROPERTY XPU_INTERCEPTOR_MODULES)
if(xpu_modules)
  install(TARGETS ${xpu_modules} LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
endif()
get_property(xpu_programs GLOBAL PROPERTY XPU_PROGRAMS)
if(xpu_programs)
  install(TARGETS ${xpu_programs} RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/xpuConfig.cmake.in" "${xpu_build_package_folder}/xpuConfig.cmake"
  INSTALL_DESTINATION "${xpu_package_folder}"
  NO_SET_AND_CHECK_MACRO
  NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file("${xpu_build_package_folder}/xpuConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
export(EXPORT xpuTargets NAMESPACE xpu:: FILE "${xpu_build_package_folder}/xpuTargets.cmake")
install(EXPORT xpuTargets NAMESPACE xpu:: DESTINATION "${xpu_package_folder}")
install(FILES "${xpu_build_package_folder}/xpuConfig.cmake" "${xpu_build_package_folder}/xpuConfigVersion.cmake"
  DESTINATION "${xpu_package_folder}")

# pkg-config's -lxpu needs the name that a wheel does not have.
if(DEFINED SKBUILD)
  return()
endif()

# Relative to where the file lies, so that it is right under a DESTDIR and after a move.
cmake_path(IS_ABSOLUTE CMAKE_INSTALL_LIBDIR xpu_libdir_is_absolute)
if(xpu_libdir_is_absolute)
  set(xpu_pc_prefix "${CMAKE_INSTALL_PREFIX}")
  set(xpu_pc_libdir "${CMAKE_INSTALL_LIBDIR}")
else()
  file(RELATIVE_PATH xpu_pc_to_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
  string(REGEX REPLACE "/$" "" xpu_pc_to_prefix "${xpu_pc_to_prefix}")
  set(xpu_pc_prefix "\${pcfiledir}/${xpu_pc_to_prefix}")
  set(xpu_pc_libdir "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
endif()
configure_file("${PROJECT_SOURCE_DIR}/cmake/xpu.pc.in" "${PROJECT_BINARY_DIR}/xpu.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/xpu.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
