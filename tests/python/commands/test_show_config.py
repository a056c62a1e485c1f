"""show_config: what a report of a problem needs."""

import os
import re
import textwrap

import numpy as np
import pytest

import dali_l3
from dali_l3 import _adapter, _native, config


def parts(text):
    """The printed items by name."""
    return dict(re.split("  +", line, maxsplit=1) for line in text.splitlines())


def shown(capsys):
    dali_l3.show_config()
    return parts(capsys.readouterr().out)


def test_versions_and_parts_are_named(capsys, plugin):
    import nvidia.dali

    items = shown(capsys)
    assert items["dali_l3"] == dali_l3.__version__
    assert os.path.samefile(items["library"], _native.LIBRARY)
    assert items["CPU back end"] == dali_l3.backend()
    assert items["DALI"] == f"{nvidia.dali.__version__} in {os.path.dirname(nvidia.dali.__file__)}"
    assert os.path.isfile(items["adapter"])
    assert items["adapters"].split(", ") == list(_adapter.packaged())
    assert items["nvImageCodec"].split(".")[0] == "0"
    assert os.path.isfile(items["extension"])
    assert items["Python"].endswith(f"numpy {np.__version__}")
    assert items["CUDA devices"]


def test_an_adapter_that_is_yet_to_be_compiled(capsys, plugin, monkeypatch, tmp_path):
    monkeypatch.setattr(_native, "PLUGINS", tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    items = shown(capsys)
    assert items["adapters"] == "none"
    assert items["adapter"].startswith(f"none yet; the import of DALI will compile {tmp_path / 'cache'}")
    assert not (tmp_path / "cache").exists()
    monkeypatch.setenv("XDG_CACHE_HOME", "/" + 256 * "x")  # where even a look is refused
    assert shown(capsys)["adapter"].startswith("none yet")


def test_an_extension_that_is_not_looked_for(capsys, plugin, monkeypatch):
    monkeypatch.setenv("NVIMGCODEC_EXTENSIONS_PATH", "/elsewhere")
    assert shown(capsys)["extension"].endswith("which NVIMGCODEC_EXTENSIONS_PATH does not name")


@pytest.mark.parametrize(
    ("init", "said"), [("__version__ = '1.52.0'\n", "DALI 1.52.0 is too old"), ("", "does not tell the version")]
)
def test_a_dali_that_does_not_do(capsys, monkeypatch, tmp_path, init, said):
    (tmp_path / "__init__.py").write_text(init)
    monkeypatch.setattr(config, "_folder", lambda package: tmp_path)
    monkeypatch.setattr(_native, "PLUGINS", tmp_path)
    assert said in shown(capsys)["DALI"]


def test_without_dali_and_without_importing_it(run_python):
    program = """
        import sys
        sys.modules["nvidia"] = None  # as if it were not installed
        import dali_l3
        dali_l3.show_config()
    """
    items = parts(run_python(textwrap.dedent(program)))
    assert items["DALI"] == "not installed"
    program = "import sys, dali_l3; dali_l3.show_config(); assert 'nvidia.dali' not in sys.modules"
    run_python(program)
