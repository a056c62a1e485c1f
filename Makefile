# On a fresh machine with python3, g++ and make (no GPU, no CUDA): `make demo` and `make test`. Everything lands in .venv and build.
PYTHON ?= python3
JOBS ?= $(shell nproc)

# The GPUs to compile for: those of this machine, or one, to see that it compiles. (pip alone compiles for all.)
CUDA_ARCHITECTURES ?= $(or $(shell nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | tr -d . | sort -u | paste -sd';'),90)

VENV := $(CURDIR)/.venv
export PATH := $(VENV)/bin:$(PATH)
# An editable install knows only the Python files that it found, so these count as sources too.
SOURCES := CMakeLists.txt $(shell find cmake csrc python -type f -not -name '*.pyc')

# Of DALI: those that `make test-dali` tests, by default all; and the one, for the other major of CUDA and the oldest, that
# `make test` tests in short beside the default.
VERSIONS ?=
OTHER_VERSION ?= cuda130-1.53.0

.PHONY: help venv build demo test test-dali test-other-dali test-cpp test-sanitized test-threads test-cuda test-ptx test-ptx-full test-python lint format docs fuzz clean

help:
	@echo "make demo    convert photographs to L3, decode them with DALI, compare with PNG, BMP and JPEG"
	@echo "make test    run the C++ and the Python tests"
	@echo "make test-dali    the operators' tests with every version of DALI, or with some: VERSIONS='2.0.0 cuda130-2.3.0'"
	@echo "make lint    check format, style and types; make format mends the format"
	@echo "make docs    build the site with the guide and the reference: build/docs/index.html"
	@echo "make test-ptx-full    the GPU's compiled kernels on the CPU, with more random images than in make test"
	@echo "make fuzz    fuzz the decoder, the readers' checks and archives with libFuzzer (needs clang); SECONDS=300, for each"
	@echo "make build   install the package with everything it needs into .venv"
	@echo "make clean   remove .venv and build"

venv: $(VENV)/requirements.txt
build: $(VENV)/installed

# What the build needs, which depends on the machine: see _build/backend.py. And numpy, in which the oracle of test-cpp is written.
$(VENV)/requirements.txt: Makefile pyproject.toml _build/backend.py
	$(PYTHON) -m venv $(VENV)
	pip install --quiet --upgrade pip scikit-build-core
	python _build/backend.py > $@.new
	pip install --quiet --requirement $@.new numpy
	mv $@.new $@

$(VENV)/installed: $(VENV)/requirements.txt $(SOURCES)
	nvimgcodec=$$(python _build/dali_matrix.py nvimgcodec) && \
	pip install --quiet --no-build-isolation --editable '.[demo,test]' \
	  --config-settings "cmake.define.NVIMGCODEC_DIR=$$nvimgcodec" \
	  --config-settings 'cmake.define.CMAKE_CUDA_ARCHITECTURES=$(CUDA_ARCHITECTURES)'
	touch $@

demo: build
	python examples/demo.py

test: test-cpp test-sanitized test-threads test-cuda test-ptx test-python test-other-dali

# The operators with other versions of DALI, each in a folder of its own under build/dali.
test-dali: build
	python _build/dali_matrix.py test --jobs $(JOBS) $(VERSIONS)

test-other-dali: build
	python _build/dali_matrix.py test --jobs $(JOBS) --short $(OTHER_VERSION)

# The core, the reading engine and their tests by CMake alone, as a C++ project would build them; then once more under ASan and UBSan.
test-cpp: venv
	cmake -S . -B build/cpp
	cmake --build build/cpp --parallel $(JOBS)
	ctest --test-dir build/cpp --output-on-failure --parallel $(JOBS)

test-sanitized: venv
	cmake -S . -B build/sanitized -DDALI_L3_SANITIZE=address,undefined
	cmake --build build/sanitized --parallel $(JOBS)
	ctest --test-dir build/sanitized --output-on-failure --parallel $(JOBS)

# The reading engine under the thread sanitizer, but for its parts that have no threads, as the codec has none.
test-threads: venv
	cmake -S . -B build/threads -DDALI_L3_SANITIZE=thread
	cmake --build build/threads --parallel $(JOBS) --target loader_tests
	ctest --test-dir build/threads --output-on-failure --parallel $(JOBS) --tests-regex ^loader_ \
	  --exclude-regex 'apportion|_plan|_order|stratified'

# That the decoder for CUDA devices compiles without warnings, with a toolkit on the system or the one in .venv.
test-cuda: venv
	cmake -S . -B build/cuda -DDALI_L3_CUDA=ON -DDALI_L3_TESTS=OFF -DCMAKE_COMPILE_WARNING_AS_ERROR=ON \
	  '-DCMAKE_CUDA_ARCHITECTURES=$(CUDA_ARCHITECTURES)'
	cmake --build build/cuda --parallel $(JOBS)

# The compiled kernels, and the host code around them, run on the CPU: tests/ptx/README.md.
test-ptx test-ptx-full: venv
	cmake -S tests/ptx -B build/ptx
	cmake --build build/ptx --parallel $(JOBS)
	$(if $(filter test-ptx-full,$@),L3_PTX_ROUNDS=30) ctest --test-dir build/ptx --output-on-failure --parallel $(JOBS)

test-python: build $(VENV)/torch
	python -m pytest --numprocesses $(JOBS)

# PyTorch without CUDA, torchdata, JAX and Triton's client, for examples, and Ray (a download of 75 MB, 240 MB installed), which
# are not tested where these cannot be had. PyPI has no such build of PyTorch.
$(VENV)/torch: $(VENV)/requirements.txt
	pip install --quiet torch==2.13.0+cpu \
	  || pip install --quiet torch==2.13.0+cpu --extra-index-url https://download.pytorch.org/whl/cpu \
	  || echo 'PyTorch is not available: the examples that use it will not be tested.'
	pip install --quiet ray==2.60.0 || echo 'Ray is not available: conversion on a cluster will not be tested.'
	pip install --quiet torchdata==0.11.0 jax==0.10.2 \
	  || echo 'torchdata or JAX is not available: the examples that use them will not be tested.'
	pip install --quiet 'tritonclient[grpc]==2.73.0' \
	  || echo 'tritonclient is not available: the model for Triton will not be tested.'
	touch $@

# The tools of lint and docs, with the versions that pyproject.toml pins.
$(VENV)/tools: $(VENV)/installed pyproject.toml
	pip install --quiet --group lint --group docs
	touch $@

CPP_SOURCES = git ls-files '*.h' '*.c' '*.cc' '*.cu'

lint: $(VENV)/tools
	ruff check .
	ruff format --check .
	$(CPP_SOURCES) | xargs clang-format --dry-run --Werror
	mypy

format: $(VENV)/tools
	ruff check --fix .
	ruff format .
	$(CPP_SOURCES) | xargs clang-format -i

docs: $(VENV)/tools
	sphinx-build --nitpicky --fail-on-warning --keep-going --quiet docs build/docs

# Not part of `make test`: needs clang with libFuzzer.
SECONDS ?= 300
fuzz: venv
	cmake -S tests/fuzz -B build/fuzz -DCMAKE_CXX_COMPILER=clang++
	cmake --build build/fuzz --parallel $(JOBS)
	mkdir -p build/fuzz/corpus build/fuzz/files build/fuzz/archives
	build/fuzz/decode_fuzzer -max_total_time=$(SECONDS) build/fuzz/corpus tests/data/golden
	build/fuzz/file_check_fuzzer -max_total_time=$(SECONDS) build/fuzz/files tests/data/golden
	build/fuzz/archive_fuzzer -max_total_time=$(SECONDS) build/fuzz/archives

clean:
	rm -rf $(VENV) build
