# Writes OUTPUT, a C++ file whose function FUNCTION (in xpu::hal, declared in HEADER) returns the text of INPUT.
file(READ "${INPUT}" text)
file(WRITE "${OUTPUT}" "// Written by embed_text.cmake.
#include \"${HEADER}\"

namespace xpu::hal {

std::string_view ${FUNCTION}() noexcept { return R\"xpu_text(${text})xpu_text\"; }

}  // namespace xpu::hal
")
