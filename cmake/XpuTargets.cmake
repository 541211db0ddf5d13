# How a folder becomes a target. Folder = layer = namespace = target = include prefix; everything that all layers share is here.
#
#   xpu_library(trace HEADERS ... SOURCES ... DEPS base ZLIB::ZLIB)     static target xpu_trace, alias xpu::trace
#   xpu_test(trace a_test.cpp b_test.cpp [NAME name] [DEPS ...] [LABELS ...] [TIMEOUT seconds])
#   xpu_shared_library(LAYERS base api trace profiler)                  libxpu.so: the layers' objects, once per process
#   xpu_interceptor_module(interceptors/opencl OUTPUT_NAME xpu_layer_opencl VERSION_SCRIPT file)
#   xpu_program(cli OUTPUT_NAME xpu SOURCES main.cpp)                   links libxpu.so, as a user's program does
#   xpu_fuzz_target(reader_fuzz reader_fuzz.cpp DEPS trace [SEED_PROGRAM target] [COVERS sources... MIN_LINE_PERCENT 90])
#
# DEPS takes our layers by their short names (base, interceptors/opencl) and everything else as CMake targets (fmt::fmt-header-only).
# `xpu` among the DEPS is the shared library: for what sits on top of it (cli) instead of inside it.

include_guard(GLOBAL)

set(XPU_BUILD_DRIVERS host sim CACHE STRING "Drivers to build in, in the order of their table: folders of src/drivers")
list(TRANSFORM XPU_BUILD_DRIVERS PREPEND "drivers/" OUTPUT_VARIABLE XPU_DRIVER_LAYERS)
set(XPU_LAYERS base api hal ${XPU_DRIVER_LAYERS} drivers memory runtime trace profiler cli interceptors/opencl)

# A folder that is not there yet is no error: folders appear when they have content.
function(xpu_add_directory folder)
  if(EXISTS "${PROJECT_SOURCE_DIR}/${folder}/CMakeLists.txt")
    add_subdirectory("${PROJECT_SOURCE_DIR}/${folder}" "${PROJECT_BINARY_DIR}/${folder}")
  endif()
endfunction()

function(xpu_target_of_layer out layer)
  string(REPLACE "/" "_" flat "${layer}")
  set(${out} "xpu_${flat}" PARENT_SCOPE)
endfunction()

# Short layer names become targets, the rest stays as it is.
function(xpu_resolve_dependencies out)
  set(resolved "")
  foreach(dependency IN LISTS ARGN)
    if(dependency IN_LIST XPU_LAYERS)
      xpu_target_of_layer(dependency "${dependency}")
    endif()
    list(APPEND resolved "${dependency}")
  endforeach()
  set(${out} "${resolved}" PARENT_SCOPE)
endfunction()

function(xpu_set_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wconversion -Wshadow $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>)
  # What clang means by -Wconversion more than gcc, and what it says of libstdc++ 12's own templates (std::stable_sort), is left out.
  target_compile_options(${target} PRIVATE "$<$<CXX_COMPILER_ID:Clang>:-Wno-sign-conversion;-Wno-deprecated-declarations>")
  if(XPU_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()

# A symbol that nobody defines is an error when we link, not when a stranger's program loads the library. clang's sanitizer runtimes live in
# the program, so a shared object built with them has undefined symbols by design.
function(xpu_forbid_undefined_symbols target)
  if(NOT (CMAKE_CXX_COMPILER_ID MATCHES "Clang" AND CMAKE_CXX_FLAGS MATCHES "-fsanitize"))
    target_link_options(${target} PRIVATE -Wl,-z,defs)
  endif()
endfunction()

function(xpu_library layer)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "HEADERS;SOURCES;DEPS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "xpu_library(${layer}): unexpected ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT layer IN_LIST XPU_LAYERS)
    message(FATAL_ERROR "xpu_library(${layer}): not a layer; the layers are ${XPU_LAYERS} (cmake/XpuTargets.cmake)")
  endif()
  xpu_target_of_layer(target "${layer}")
  xpu_resolve_dependencies(dependencies ${arg_DEPS})

  if(arg_SOURCES)
    set(scope PUBLIC)
    set(has_objects ON)
    add_library(${target} STATIC ${arg_SOURCES})
    xpu_set_warnings(${target})
  else()
    set(scope INTERFACE)
    set(has_objects OFF)
    add_library(${target} INTERFACE)
  endif()
  string(REPLACE "/" "::" alias "${layer}")
  add_library(xpu::${alias} ALIAS ${target})
  target_compile_features(${target} ${scope} cxx_std_20)
  target_include_directories(${target} ${scope} "${PROJECT_SOURCE_DIR}/src")
  target_link_libraries(${target} ${scope} ${dependencies})

  set(headers "")
  foreach(header IN LISTS arg_HEADERS)
    cmake_path(ABSOLUTE_PATH header BASE_DIRECTORY "${PROJECT_SOURCE_DIR}/include/xpu/${layer}" NORMALIZE)
    list(APPEND headers "${header}")
  endforeach()
  # The file set also gives users of the target the include root include/.
  target_sources(${target} ${scope} FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}/include" FILES ${headers})
  set_target_properties(${target} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ${XPU_BUILD_TESTS})

  set_target_properties(${target} PROPERTIES XPU_HEADERS "${headers}" XPU_HAS_OBJECTS ${has_objects})
  set(external ${dependencies})
  list(FILTER external EXCLUDE REGEX "^xpu_")
  set_target_properties(${target} PROPERTIES XPU_EXTERNAL_DEPENDENCIES "${external}")
endfunction()

# One program, one CTest entry: a process per test would open every device hundreds of times.
function(xpu_test_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "SOURCES;DEPS;LABELS")
  if(NOT XPU_BUILD_TESTS)
    return()
  endif()
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "xpu_test_program(${name}): unexpected ${arg_UNPARSED_ARGUMENTS}")
  endif()
  xpu_resolve_dependencies(dependencies ${arg_DEPS})
  add_executable(${name} ${arg_SOURCES})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/include")
  target_link_libraries(${name} PRIVATE ${dependencies} GTest::gmock GTest::gtest GTest::gtest_main Threads::Threads)
  xpu_set_warnings(${name})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "${arg_LABELS}")
endfunction()

# The unit tests of a layer link that layer and what it declared: an upward call does not link.
function(xpu_test layer)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "NAME;TIMEOUT" "DEPS;LABELS")
  if(NOT arg_NAME)
    string(REPLACE "/" "_" flat "${layer}")
    set(arg_NAME "${flat}_test")
  endif()
  xpu_test_program(${arg_NAME} SOURCES ${arg_UNPARSED_ARGUMENTS} DEPS ${layer} ${arg_DEPS} LABELS ${arg_LABELS} TIMEOUT ${arg_TIMEOUT})
endfunction()

function(xpu_link_layer_objects target)
  foreach(layer IN LISTS ARGN)
    xpu_target_of_layer(layer_target "${layer}")
    get_target_property(has_objects ${layer_target} XPU_HAS_OBJECTS)
    if(has_objects)
      target_sources(${target} PRIVATE $<TARGET_OBJECTS:${layer_target}>)
    endif()
    get_target_property(external ${layer_target} XPU_EXTERNAL_DEPENDENCIES)
    target_link_libraries(${target} PRIVATE ${external})
  endforeach()
endfunction()

# The probe exists once per process, so all layers are one shared library and everything else links to it.
function(xpu_shared_library)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "LAYERS")
  set(layers "")
  set(headers "")
  foreach(layer IN LISTS arg_LAYERS)
    xpu_target_of_layer(layer_target "${layer}")
    if(TARGET ${layer_target})
      list(APPEND layers ${layer})
      get_target_property(layer_headers ${layer_target} XPU_HEADERS)
      list(APPEND headers ${layer_headers})
    endif()
  endforeach()

  add_library(xpu SHARED)
  add_library(xpu::xpu ALIAS xpu)
  xpu_link_layer_objects(xpu ${layers})
  # A wheel cannot hold symbolic links: there the file itself has the name that programs ask for.
  if(NOT DEFINED SKBUILD)
    set_target_properties(xpu PROPERTIES VERSION ${PROJECT_VERSION})
  endif()
  set_target_properties(xpu PROPERTIES
    SOVERSION 0
    LINKER_LANGUAGE CXX
    LINK_DEPENDS "${PROJECT_SOURCE_DIR}/cmake/xpu.map")
  target_compile_features(xpu INTERFACE cxx_std_20)
  target_sources(xpu PUBLIC FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}/include" FILES ${headers})
  target_link_options(xpu PRIVATE "-Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/xpu.map")
  xpu_forbid_undefined_symbols(xpu)
endfunction()

# A loadable layer has its own objects only and takes everything below from libxpu.so beside it.
function(xpu_interceptor_module layer)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "OUTPUT_NAME;VERSION_SCRIPT" "")
  add_library(${arg_OUTPUT_NAME} MODULE)
  xpu_link_layer_objects(${arg_OUTPUT_NAME} ${layer})
  target_link_libraries(${arg_OUTPUT_NAME} PRIVATE xpu)
  cmake_path(ABSOLUTE_PATH arg_VERSION_SCRIPT BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" NORMALIZE)
  target_link_options(${arg_OUTPUT_NAME} PRIVATE "-Wl,--version-script=${arg_VERSION_SCRIPT}")
  set_target_properties(${arg_OUTPUT_NAME} PROPERTIES
    LINKER_LANGUAGE CXX
    LINK_DEPENDS "${arg_VERSION_SCRIPT}"
    INSTALL_RPATH "$ORIGIN")
  xpu_forbid_undefined_symbols(${arg_OUTPUT_NAME})
  set_property(GLOBAL APPEND PROPERTY XPU_INTERCEPTOR_MODULES ${arg_OUTPUT_NAME})
endfunction()

# `layer` is the static target with the program's code, so that its unit tests link the same code.
function(xpu_program layer)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "OUTPUT_NAME" "SOURCES")
  xpu_resolve_dependencies(dependencies ${layer})
  add_executable(${arg_OUTPUT_NAME}_program ${arg_SOURCES})
  target_link_libraries(${arg_OUTPUT_NAME}_program PRIVATE ${dependencies} xpu)
  xpu_set_warnings(${arg_OUTPUT_NAME}_program)
  file(RELATIVE_PATH to_libraries "/${CMAKE_INSTALL_BINDIR}" "/${CMAKE_INSTALL_LIBDIR}")
  set_target_properties(${arg_OUTPUT_NAME}_program PROPERTIES
    OUTPUT_NAME ${arg_OUTPUT_NAME}
    INSTALL_RPATH "$ORIGIN/${to_libraries}")
  set_property(GLOBAL APPEND PROPERTY XPU_PROGRAMS ${arg_OUTPUT_NAME}_program)
endfunction()

# A fuzz target and its inputs: tests/fuzz/corpus/<name> and, where SEED_PROGRAM names a target, what `<program> FOLDER` writes.
#
# With XPU_BUILD_FUZZ: bin/<name>, and a test with the label fuzz in which tools/run_fuzz_target.sh fuzzes for XPU_FUZZ_SECONDS and then
# measures what share of the lines of COVERS (sources, relative to the project) the inputs reach: below MIN_LINE_PERCENT the test fails.
# Otherwise: bin/<name>_replay, a test that hands each input to the target once, under whatever sanitizer the build has.
function(xpu_fuzz_target name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "SEED_PROGRAM;MIN_LINE_PERCENT" "DEPS;COVERS")
  if(XPU_BUILD_FUZZ)
    set(program ${name})
    set(label fuzz)
    add_executable(${program} ${arg_UNPARSED_ARGUMENTS})
    target_link_options(${program} PRIVATE -fsanitize=fuzzer)
  elseif(XPU_BUILD_TESTS)
    set(program ${name}_replay)
    set(label "")
    add_executable(${program} ${arg_UNPARSED_ARGUMENTS} "${PROJECT_SOURCE_DIR}/tests/fuzz/replay_main.cpp")
  else()
    return()
  endif()
  xpu_resolve_dependencies(dependencies ${arg_DEPS})
  target_include_directories(${program} PRIVATE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/include")
  target_link_libraries(${program} PRIVATE ${dependencies} Threads::Threads)
  xpu_set_warnings(${program})
  if(NOT TARGET fuzz_targets)
    add_custom_target(fuzz_targets)
  endif()
  add_dependencies(fuzz_targets ${program})

  set(work "${PROJECT_BINARY_DIR}/fuzz/${name}")
  set(inputs "${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${name}" "${work}/seeds")
  if(XPU_BUILD_FUZZ)
    set(coverage "")
    if(arg_COVERS)
      list(TRANSFORM arg_COVERS PREPEND "${PROJECT_SOURCE_DIR}/")
      set(coverage --covers ${arg_MIN_LINE_PERCENT} ${arg_COVERS})
    endif()
    add_test(NAME ${program}
      COMMAND bash "${PROJECT_SOURCE_DIR}/tools/run_fuzz_target.sh" $<TARGET_FILE:${program}> "${work}" ${inputs} ${coverage})
    # The script has the limit that follows XPU_FUZZ_SECONDS.
    set_tests_properties(${program} PROPERTIES LABELS fuzz TIMEOUT 7200)
  else()
    add_test(NAME ${program} COMMAND ${program} ${inputs})
    set_tests_properties(${program} PROPERTIES TIMEOUT 120)
  endif()
  if(arg_SEED_PROGRAM)
    add_dependencies(fuzz_targets ${arg_SEED_PROGRAM})
    file(MAKE_DIRECTORY "${work}/seeds")
    add_test(NAME ${name}_seeds COMMAND ${arg_SEED_PROGRAM} "${work}/seeds")
    set_tests_properties(${name}_seeds PROPERTIES LABELS "${label}" TIMEOUT 120 FIXTURES_SETUP ${name}_seeds)
    set_tests_properties(${program} PROPERTIES FIXTURES_REQUIRED ${name}_seeds)
  endif()
endfunction()
