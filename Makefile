# Thin names for what the scripts and presets do; everything works without make too.

.DEFAULT_GOAL := help
presets := dev release python asan tsan clang fuzz coverage
.PHONY: help demo test soak torch-venv format $(presets)

help: ## this list
	@sed -n 's/^\([a-z-]*\): .*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 15 | sed 's/^/  make /'
	@printf '  make %s\n' 'test-STAGE     one stage of: '"$$(tools/run_tests.sh --list | cut -d' ' -f1 | tr '\n' ' ')"
	@printf '  make %s\n' 'PRESET         configure, build and test in build/PRESET: $(presets)'

demo: ## records a real program on the CPU, prints its table, leaves demo.xpu and demo.json.gz
	@tools/demo.sh

test: ## everything that is checked before a change lands
	@tools/run_tests.sh

test-%:
	@tools/run_tests.sh $*

$(presets):
	@cmake --workflow --preset $@

torch-venv: ## an environment with stock PyTorch, libxpu and the bridge: .venv-torch
	@tools/torch_venv.sh

soak: ## kills programs and recorders at random times, hundreds of times
	@cmake --preset release && cmake --build --preset release && ctest --preset soak --verbose

format: ## formats what git knows
	@git ls-files '*.h' '*.hpp' '*.c' '*.cpp' | xargs clang-format-19 -i
