#include "cli/command_line.hpp"

int main(int argc, char** argv) { return xpu::cli::run(argc, argv); }
