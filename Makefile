# The front door. Every target does its own set-up, so that a fresh clone on a bare Debian 12 needs nothing else.
# The build itself is CMake's: see CMakePresets.json for the presets and `make help` for the targets.

.DEFAULT_GOAL := help
.PHONY: help setup build demo test bench bench-operators bench-checkpoints gpu-bundle gpu-check docs format format-check check-includes install clean

PREFIX ?= /usr/local
CMAKE_ARGS ?=
DEMO_ARGS ?=
BENCH_ARGS ?=
GPU_ARGS ?=

help:  ## Print this list
	@grep -E '^[a-z-]+:.*  ## ' $(firstword $(MAKEFILE_LIST)) | sed -E 's/^([a-z-]+):.*  ## (.*)/  make \1|\2/' | \
	  awk -F'|' '{printf "%-26s%s\n", $$1, $$2}'

setup:  ## Install the Debian packages that the product needs and this machine lacks
	@scripts/setup

build: setup  ## Build the library and the program into build/ (the program is build/bin/tern)
	cmake --preset release $(CMAKE_ARGS)
	cmake --build --preset release --target product

demo: setup  ## Build the program, train LeNet on the built-in digits, save it, load it again, and show what it sees
	cmake --preset release $(CMAKE_ARGS)
	cmake --build --preset release --target tern_cli
	build/bin/tern demo $(DEMO_ARGS)

test:  ## Build everything and run all tests
	@scripts/setup --test
	cmake --preset release $(CMAKE_ARGS)
	cmake --build --preset release
	ctest --preset release --parallel $$(nproc)

bench:  ## Compare with libtorch and PyTorch; figures go to docs/benchmarks.md and .json (BENCH_ARGS: see bench/compare.py --help)
	@scripts/setup --test
	cmake --preset release -DTERN_BUILD_BENCH=ON $(CMAKE_ARGS)
	cmake --build --preset release --target tern_peer
	python=$$(scripts/bench_env) && bench/compare.py --tern build/bin/tern_peer --python "$$python" \
	  --json docs/benchmarks.json --markdown docs/benchmarks.md $(BENCH_ARGS)

bench-operators:  ## The same for each operator; figures go to docs/operator-benchmarks.md and .json (BENCH_ARGS: see bench/operators.py --help)
	@scripts/setup --test
	cmake --preset release -DTERN_BUILD_BENCH=ON $(CMAKE_ARGS)
	cmake --build --preset release --target operator_peer
	python=$$(scripts/bench_env) && bench/operators.py --tern build/bin/operator_peer --python "$$python" \
	  --json docs/operator-benchmarks.json --markdown docs/operator-benchmarks.md $(BENCH_ARGS)

bench-checkpoints:  ## The same for checkpoints; figures go to docs/checkpoint-benchmarks.md and .json (BENCH_ARGS: see bench/checkpoints.py --help)
	@scripts/setup --test
	cmake --preset release -DTERN_BUILD_BENCH=ON $(CMAKE_ARGS)
	cmake --build --preset release --target checkpoint_peer tern_cli copy_tool module_tool resume_tool logits_tool random_tool
	python=$$(scripts/bench_env) && bench/checkpoints.py --bin build/bin --python "$$python" \
	  --json docs/checkpoint-benchmarks.json --markdown docs/checkpoint-benchmarks.md $(BENCH_ARGS)

gpu-bundle:  ## Pack programs, tests and benchmarks for a machine with a GPU into out/gpu-bundle (GPU_ARGS: see scripts/gpu_bundle --help)
	@scripts/setup --test
	cmake --preset release -DTERN_BUILD_BENCH=ON -DTERN_CUDA=ON -DTERN_CUDA_ARCHITECTURES= -DCMAKE_CUDA_FLAGS= $(CMAKE_ARGS)
	cmake --build --preset release
	scripts/gpu_bundle $(GPU_ARGS)

gpu-check:  ## Run all tests and benchmarks on this machine's GPU; results go to docs/gpu-results.md and .json (GPU_ARGS: see scripts/gpu_check.py --help)
	@scripts/setup --test
	cmake --preset release -DTERN_BUILD_BENCH=ON -DTERN_CUDA_ARCHITECTURES= -DCMAKE_CUDA_FLAGS= $(CMAKE_ARGS)
	cmake --build --preset release --target product
	scripts/gpu_check.py --have-gpu
	cmake --build --preset release
	python=python3; $$python -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null || python=$$(scripts/bench_env); \
	  scripts/gpu_check.py --python "$$python" $(GPU_ARGS)

docs:  ## Build the reference with Doxygen into build/docs/html
	@scripts/setup --docs
	mkdir -p build/docs
	doxygen Doxyfile

format:  ## Format all C++ files
	@scripts/setup --test
	scripts/format

format-check:  ## Report C++ files that are not formatted
	@scripts/setup --test
	scripts/format --check

check-includes:  ## Check which room includes which
	@scripts/setup --test
	scripts/check_includes

install: build  ## Install the library, its headers and the program below PREFIX (default /usr/local)
	cmake --install build --prefix "$(PREFIX)"

clean:  ## Remove all build folders
	rm -rf build build-debug build-asan build-tsan build-fuzz
