#include "tests/acceptance/child_process.hpp"

int main(int argument_count, char** arguments) { return xpu::acceptance::run_program(argument_count, arguments); }
