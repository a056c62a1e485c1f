"""The kernels stay within the compiler's report that is kept beside them: no spills, no stack, no more registers."""

import importlib.util
import json
from pathlib import Path

import pytest

CUDA = Path(__file__).parents[3] / "csrc/l3/cuda"
ARCHITECTURE = "90"  # one is compiled here; resources.py compiles all


def load_resources():
    spec = importlib.util.spec_from_file_location("resources", CUDA / "resources.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


resources = load_resources()


@pytest.fixture(scope="module")
def report():
    return json.loads(resources.REPORT.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def nvcc():
    found = resources.find_nvcc()
    if found is None:
        pytest.skip("there is no nvcc")
    return found


@pytest.fixture(scope="module")
def compiled(nvcc):
    return resources.measure(nvcc, ARCHITECTURE)


def assert_within(measured, committed, same_compiler):
    assert measured.keys() == committed.keys(), "kernels came or went: run csrc/l3/cuda/resources.py"
    for name, kernel in measured.items():
        assert kernel["stack"] == kernel["spill_stores"] == kernel["spill_loads"] == 0, name
        if same_compiler:
            assert kernel == committed[name], f"{name} changed: run csrc/l3/cuda/resources.py"
        else:
            assert kernel["registers"] <= committed[name]["registers"], name


def test_compiled_kernels_match_the_report(nvcc, report, compiled):
    same_compiler = resources.nvcc_version(nvcc) == report["nvcc"]
    assert_within(compiled, report["architectures"][f"sm_{ARCHITECTURE}"], same_compiler)


def test_report_covers_all_architectures_without_spills(report):
    assert list(report["architectures"]) == [f"sm_{name}" for name in resources.ARCHITECTURES]
    kernels = list(report["architectures"][f"sm_{ARCHITECTURE}"])
    assert {f"decode_fast8<{channels}>" for channels in (1, 2, 3, 4)} <= set(kernels)
    for architecture in report["architectures"].values():
        assert list(architecture) == kernels
        for kernel in architecture.values():
            assert kernel["stack"] == kernel["spill_stores"] == kernel["spill_loads"] == 0


PTXAS = """\
ptxas info    : Compiling entry function '_ZN2l312_GLOBAL__N_112decode_fast8ILj3EEEvPKhj' for 'sm_90'
ptxas info    : Function properties for _ZN2l312_GLOBAL__N_112decode_fast8ILj3EEEvPKhj
    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 72 registers, used 1 barriers, 31104 bytes smem
ptxas info    : Compiling entry function '_Z6decodePKh' for 'sm_90'
ptxas info    : Function properties for _Z6decodePKh
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 40 registers
"""


def test_report_of_the_compiler_is_understood():
    assert resources.parse_report(PTXAS) == {
        "decode_fast8<3>": {"registers": 72, "stack": 16, "spill_stores": 8, "spill_loads": 12, "shared": 31104},
        "decode": {"registers": 40, "stack": 0, "spill_stores": 0, "spill_loads": 0, "shared": 0},
    }


@pytest.mark.parametrize(
    "change",
    [{"stack": 8}, {"spill_stores": 4}, {"spill_loads": 4}, {"registers": 73}],
    ids=lambda change: next(iter(change)),
)
@pytest.mark.parametrize("same_compiler", [True, False])
def test_regressions_are_noticed(change, same_compiler):
    committed = {"kernel": {"registers": 72, "stack": 0, "spill_stores": 0, "spill_loads": 0, "shared": 1024}}
    assert_within(committed, committed, same_compiler)
    with pytest.raises(AssertionError):
        assert_within({"kernel": committed["kernel"] | change}, committed, same_compiler)
