# The target torch_wheel: headers and libraries of the PyTorch that the interpreter imports. PyTorch's own CMake package also looks for what
# the wheel was built with, which is not there.

execute_process(
  COMMAND "${Python_EXECUTABLE}" -c "import os, torch\nprint(torch.__version__)\nprint(os.path.dirname(torch.__file__))\nprint(int(torch._C._GLIBCXX_USE_CXX11_ABI))"
  OUTPUT_VARIABLE found RESULT_VARIABLE status ERROR_VARIABLE reason OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${Python_EXECUTABLE} has no PyTorch to build against; install torch ${XPU_TORCH_VERSION} first:\n${reason}")
endif()
string(REPLACE "\n" ";" found "${found}")
list(GET found 0 torch_version)
list(GET found 1 torch_folder)
list(GET found 2 torch_abi)
if(NOT torch_version MATCHES "^${XPU_TORCH_VERSION}($|\\+)")
  message(FATAL_ERROR "this is for PyTorch ${XPU_TORCH_VERSION}, but ${Python_EXECUTABLE} has ${torch_version}; install torch==${XPU_TORCH_VERSION}")
endif()

add_library(torch_wheel INTERFACE)
target_include_directories(torch_wheel SYSTEM INTERFACE
  "${torch_folder}/include" "${torch_folder}/include/torch/csrc/api/include" "${torch_folder}/include/kineto")
# The wheel exports none of fmt's functions, so its headers have to bring them.
target_compile_definitions(torch_wheel INTERFACE USE_KINETO FMT_HEADER_ONLY=1 _GLIBCXX_USE_CXX11_ABI=${torch_abi})
foreach(library IN ITEMS c10 torch_cpu torch torch_python)
  target_link_libraries(torch_wheel INTERFACE "${torch_folder}/lib/lib${library}.so")
endforeach()
