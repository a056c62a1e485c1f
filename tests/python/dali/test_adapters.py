"""Adapters to DALI: one for the very version that is there, compiled if need be, and never that of another version."""

import os
import re
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import nvidia.dali
import pytest

from dali_l3 import _adapter, _native, _plugin
from waiting import HANGS

pytestmark = pytest.mark.usefixtures("plugin")

# A program for which the package has no adapters. It prints which one DALI has loaded, after using it.
WITHOUT_ADAPTERS = """
import pathlib
import dali_l3
from dali_l3 import _native, _plugin
_native.PLUGINS = pathlib.Path("nowhere")
import nvidia.dali
import numpy as np
from nvidia.dali import fn, pipeline_def

image = np.arange(70 * 80 * 3, dtype=np.uint16).astype(np.uint8).reshape(70, 80, 3)
data = np.frombuffer(dali_l3.encode(image), np.uint8)

@pipeline_def(batch_size=2, num_threads=2, device_id=None)
def pipeline():
    return fn.decoders.l3(fn.external_source(lambda: [data, data]))

np.testing.assert_array_equal(np.asarray(pipeline().run()[0][1]), image)
print(_plugin.loaded())
"""

# A compiler that takes its time, and gives what has been compiled before.
STAND_IN = """#!/bin/sh
echo run >> {log}
sleep 1
while [ "$1" != -o ]; do shift; done
cp {adapter} "$2"
"""


FAILING = """#!/bin/sh
while [ "$1" != -o ]; do shift; done
echo half > "$2"
echo no memory >&2
exit 1
"""


@pytest.fixture(scope="session")
def adapter():
    """The one for the DALI that is installed."""
    return _plugin.load()


class Machine:
    """An environment with a cache and a compiler of its own."""

    def __init__(self, folder, adapter):
        self.folder = folder
        self.log = folder / "log"
        self.environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
        self.set_compiler(STAND_IN.format(log=self.log, adapter=adapter))

    def set_compiler(self, script):
        compiler = self.folder / "compiler"
        compiler.write_text(script)
        compiler.chmod(compiler.stat().st_mode | stat.S_IXUSR)
        self.environment["CXX"] = str(compiler)

    def start(self, program=WITHOUT_ADAPTERS):
        return subprocess.Popen(
            [sys.executable, "-c", program],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, program=WITHOUT_ADAPTERS):
        """What the program printed on standard output and on standard error."""
        process = self.start(program)
        output, errors = process.communicate(timeout=HANGS)
        assert process.returncode == 0, errors
        return output.strip(), errors

    def fail(self):
        """The last error of the program."""
        process = self.start()
        _, errors = process.communicate(timeout=HANGS)
        assert process.returncode == 1
        return errors[errors.rindex("\nRuntimeError") :]

    def compilations(self):
        return len(self.log.read_text().split()) if self.log.exists() else 0


@pytest.fixture
def machine(tmp_path, adapter):
    return Machine(tmp_path, adapter)


class TestCompiling:
    def test_an_adapter_is_compiled_once_and_kept(self, machine):
        del machine.environment["CXX"]
        first, said = machine.run()
        assert first.startswith(str(machine.folder / "cache" / "dali_l3"))
        assert "compiling the adapter to DALI" in said
        assert b"$ORIGIN" not in Path(first).read_bytes()  # from where it is kept, no path leads to the library
        machine.environment["CXX"] = "false"
        again, said = machine.run()
        assert again == first
        assert "compiling" not in said

    def test_processes_that_come_at_once_compile_once(self, machine):
        processes = [machine.start() for _ in range(2)]
        outputs = [process.communicate(timeout=HANGS) for process in processes]
        assert [process.returncode for process in processes] == [0, 0], outputs
        assert outputs[0][0] == outputs[1][0]
        assert machine.compilations() == 1

    @pytest.mark.parametrize("cache", ["/proc/nowhere", "/" + 256 * "x"])  # of the second even a look is refused
    def test_a_cache_that_cannot_be_written_is_done_without(self, machine, cache):
        machine.environment["XDG_CACHE_HOME"] = cache
        path, said = machine.run()
        assert cache in said
        assert "XDG_CACHE_HOME" in said
        assert not path.startswith(cache)
        assert not os.path.exists(os.path.dirname(path))

    def test_where_nothing_can_be_written_the_error_says_so(self, tmp_path, monkeypatch):
        monkeypatch.setattr(_native, "PLUGINS", tmp_path)
        monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
        monkeypatch.setattr("tempfile.tempdir", "/proc/nothing")
        message = "/proc/nowhere.*; .*/proc/nothing.* There is no place for it: let the variable XDG_CACHE_HOME name"
        with pytest.raises(RuntimeError, match=message):
            _adapter.find(nvidia.dali.__version__, Path(nvidia.dali.__file__).parent)

    def test_without_a_compiler_the_error_says_what_to_do(self, machine):
        machine.environment["PATH"] = str(machine.folder)
        del machine.environment["CXX"]
        error = machine.fail()
        assert "there is no C++ compiler. Install g++ 12 or later" in error
        machine.environment["CXX"] = "no-such-compiler -O2"
        assert "CXX names no-such-compiler, which is not there" in machine.fail()

    def test_the_compiler_may_have_options_and_spaces_in_its_path(self, tmp_path, monkeypatch):
        from dali_l3 import _adapter_build

        compiler = tmp_path / "my tools" / "g++"
        compiler.parent.mkdir()
        compiler.write_text("#!/bin/sh")
        compiler.chmod(0o755)
        for value, command in [
            (str(compiler), [str(compiler)]),
            (f" {compiler} ", [str(compiler)]),
            (f"'{compiler}' -O1", [str(compiler), "-O1"]),
        ]:
            monkeypatch.setenv("CXX", value)
            assert _adapter_build.find_compiler() == command

    @pytest.mark.parametrize("variable", ["CXX", "CXXFLAGS"])
    def test_a_quotation_that_does_not_end_is_an_error_of_the_variable(self, variable, machine):
        machine.environment[variable] = "it's"
        assert f"""the variable {variable} is "it's": No closing quotation""" in machine.fail()

    def test_a_compiler_that_fails_is_quoted_and_leaves_nothing(self, machine, adapter):
        compiler = machine.folder / "compiler"
        good = compiler.read_text()
        machine.set_compiler(FAILING)
        error = machine.fail()
        assert "the compiler failed" in error
        assert "no memory" in error
        assert not [path for path in (machine.folder / "cache").rglob("*") if path.suffix != "" and path.is_file()]
        machine.set_compiler(good)
        machine.run()

    def test_headers_of_cuda_that_are_missing(self, monkeypatch):
        from dali_l3 import _adapter_build

        monkeypatch.setattr(_adapter_build, "_CUDA_HEADERS", ("no_such_header.h",))
        with pytest.raises(_adapter_build.BuildError, match="pip install nvidia-cuda-runtime"):
            _adapter_build.find_cuda_headers()

    def test_headers_of_cuda_of_packages_in_several_places(self, tmp_path, monkeypatch):
        """In the environment and in the user's packages, say."""
        from dali_l3 import _adapter_build

        headers = ("here/only_here.h", "there/only_there.h")
        monkeypatch.setattr(_adapter_build, "_CUDA_HEADERS", headers)
        wanted = []
        for place, header in zip(("a", "b"), headers, strict=True):
            wanted.append(tmp_path / place / "nvidia" / "cu13" / "include")
            (wanted[-1] / header).parent.mkdir(parents=True)
            (wanted[-1] / header).touch()
            monkeypatch.syspath_prepend(tmp_path / place)
        assert set(wanted) <= set(_adapter_build.find_cuda_headers())

    def test_the_cache_knows_the_sources(self, tmp_path, monkeypatch):
        from dali_l3 import _adapter_build

        dali = tmp_path / "dali"
        dali.mkdir()
        for name in ("__init__.py", *_adapter_build.LIBRARIES):
            (dali / name).write_text("a")
        source = tmp_path / "source" / "deep"
        source.mkdir(parents=True)
        monkeypatch.setattr(_native, "ADAPTER_SOURCE", tmp_path / "source")
        keys = {_adapter._digest(dali)}
        for path, content in [
            (source / "unit.cc", "1"),
            (source / "unit.cc", "2"),
            (dali / "__init__.py", "b"),
            *((dali / name, "aa") for name in _adapter_build.LIBRARIES),
        ]:
            path.write_text(content)
            keys.add(_adapter._digest(dali))
        assert len(keys) == 7


def test_an_adapter_of_the_package_loads_without_the_package(adapter, run_python):
    """By DALI_PRELOAD_PLUGINS, say, or in Triton: it finds the library by itself."""
    if adapter not in _adapter.packaged().values():
        pytest.skip("it was compiled here")
    program = f"""
        import sys
        from nvidia.dali import fn, plugin_manager
        plugin_manager.load_library({str(adapter)!r})
        assert fn.decoders.l3
        assert "dali_l3" not in sys.modules
    """
    run_python(textwrap.dedent(program))


class TestOtherVersions:
    @pytest.fixture
    def other_dali(self, tmp_path):
        """An environment in which `nvidia.dali` is another version that does nothing."""

        def make(version):
            for folder in ("nvidia", "nvidia/dali"):
                (tmp_path / folder).mkdir()
                (tmp_path / folder / "__init__.py").write_text(f"__version__ = '{version}'\n")
            return {**os.environ, "PYTHONPATH": str(tmp_path)}

        return make

    @pytest.mark.parametrize("imports", [("dali_l3", "nvidia.dali"), ("nvidia.dali", "dali_l3")])
    @pytest.mark.parametrize(("version", "problem"), [("9.8.7", "has no include"), ("1.52.0", "is too old")])
    def test_one_clear_error_and_the_codec_works_all_the_same(self, imports, version, problem, other_dali, run_python):
        wanted = rf"has adapters to DALI \d.* DALI here is {version} .*{problem}.*pip install 'nvidia-dali-"
        program = f"""
            import re, numpy as np, {imports[0]}
            try:
                import {imports[1]}
            except RuntimeError as error:
                assert re.search({wanted!r}, str(error)), error
            else:
                raise AssertionError("no error")
            if {imports[0] == "dali_l3"}:
                assert dali_l3.decode(dali_l3.encode(np.full((1, 1), 7, np.uint8))) == 7
        """
        run_python(textwrap.dedent(program), env=other_dali(version))

    def test_an_adapter_of_another_version_is_refused(self, machine, adapter):
        """Such as a file that was copied to the wrong place. It asks for symbols of a version that is not there."""
        version = nvidia.dali.__version__
        names = [f"{library}_{version}".encode() for library in ("DALI", "DALI_CORE")]
        content = adapter.read_bytes()
        assert any(name in content for name in names)
        for name in names:
            content = content.replace(name, re.sub(rb"\d", b"7", name))
        misplaced = machine.folder / "plugins" / version / adapter.name
        misplaced.parent.mkdir(parents=True)
        misplaced.write_bytes(content)
        program = WITHOUT_ADAPTERS.replace('"nowhere"', repr(str(machine.folder / "plugins")))
        process = machine.start(program)
        _, errors = process.communicate(timeout=HANGS)
        assert process.returncode == 1
        assert f"DALI {version} refuses {misplaced}, which was not built for it" in errors

    def test_adapters_of_other_versions_are_refused(self):
        """Those in the package and in the cache; the runs with several versions of DALI have some."""
        kept = {path.parent.name.partition("-")[0]: path for path in _adapter.cache_folder().glob(f"*/{_adapter.NAME}")}
        others = {**kept, **_adapter.packaged()}
        others.pop(nvidia.dali.__version__, None)
        if not others:
            pytest.skip("there are none")
        for version, path in others.items():
            with pytest.raises(RuntimeError, match=rf"version `DALI\w*_{re.escape(version)}' not found"):
                nvidia.dali.plugin_manager.load_library(str(path))

    def test_a_library_of_another_version_is_refused(self, adapter):
        """The adapter asks for the library of the package by its exact version."""
        content = adapter.read_bytes()
        assert _native.LIBRARY.name.encode() in content
        assert f"DALI_L3_{_native.LIBRARY.name.removeprefix('libdali_l3.so.')}".encode() in content


@pytest.mark.parametrize(
    ("schema", "output", "arguments", "expected"),
    [
        ("decoders__L3", 0, {}, (3, None, "HWC")),
        ("decoders__L3", 0, {"windows": [0, 0, 1, 1]}, (4, None, "FHWC")),
        ("decoders__L3", 1, {"on_error": "zeros"}, (0, "BOOL", None)),
        ("readers__MultiFormat", 0, {}, (1, "UINT8", None)),
        ("readers__MultiFormat", 1, {}, (1, "INT32", None)),
        ("readers__MultiFormat", 1, {"label_columns": 3}, (1, "FLOAT", None)),
        ("readers__Liquid", 1, {"companions": ["{stem}"]}, (1, "UINT8", None)),
    ],
)
def test_schemas_tell_of_outputs_before_an_operator_runs(schema, output, arguments, expected):
    from nvidia.dali import backend

    if not hasattr(backend.OpSchema, "CalculateOutputNDim"):
        pytest.skip("schemas tell of outputs from DALI 2.2 on")
    specification = backend.OpSpec(schema)
    for name, value in {"device": "cpu", **arguments}.items():
        specification.AddArg(name, value)
    found = backend.GetSchema(schema)
    dimensions = found.CalculateOutputNDim(output, specification)
    dtype = found.CalculateOutputDType(output, specification)
    layout = found.CalculateOutputLayout(output, specification)
    assert (dimensions, dtype and dtype.name, layout and str(layout)) == expected
