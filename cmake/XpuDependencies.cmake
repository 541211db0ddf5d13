# Debian packages only, nothing is fetched. What each one is for: docs/dependencies.md.

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(fmt 9.1 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(CLI11 2.1 REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(OpenCLHeaders REQUIRED)

if(XPU_BUILD_TESTS)
  find_package(GTest 1.12 REQUIRED)
  find_package(rapidcheck QUIET)
endif()
