"""`import dali_l3` beside DALI and nvImageCodec: any order, none at all, processes and threads."""

import ast
import inspect
import os
import textwrap
from pathlib import Path

import pytest

from dali_l3 import _native
from dali_l3.fn import decoders, readers
from versions import since

pytestmark = pytest.mark.usefixtures("plugin")

# A program that decodes an image with an operator of a pipeline.
PIPELINE = """
import numpy as np

def check(operator):
    from nvidia.dali import fn, pipeline_def
    image = np.arange(70 * 80 * 3, dtype=np.uint8).reshape(70, 80, 3)
    data = np.frombuffer(dali_l3.encode(image), np.uint8)

    @pipeline_def(batch_size=2, num_threads=2, device_id=None)
    def pipeline():
        return operator(fn.external_source(lambda: [data, data]))

    (output,) = pipeline().run()
    for sample in output:
        np.testing.assert_array_equal(np.asarray(sample), image)
"""


# A program that imports modules in line 6 and prints what dali_l3 warns of, with the line that the warning names.
WARNINGS = """
import warnings

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import {imports}
for warning in caught:
    if "dali_l3" in str(warning.message):
        print(f"{{warning.filename}}:{{warning.lineno}}: {{warning.message}}")
"""


class TestOrderOfImports:
    @pytest.mark.parametrize(
        "imports",
        [
            "import dali_l3; from nvidia.dali import fn",
            "from nvidia.dali import fn; import dali_l3",
            "import dali_l3; import nvidia.dali.fn as fn",
            "import dali_l3; import nvidia.dali.plugin_manager; from nvidia.dali import fn",
            "import nvidia; import dali_l3, nvidia.dali; fn = nvidia.dali.fn",
        ],
    )
    def test_the_operator_is_there(self, imports, run_python):
        run_python(f"{imports}\n{PIPELINE}\ncheck(fn.decoders.l3)")

    def test_operator_and_class_stay_when_the_plugin_is_loaded_again(self, run_python):
        program = """
            check(ops.decoders.L3())
            nvidia.dali.plugin_manager.load_library(str(_plugin.loaded()))
            _plugin.load()
            check(fn.decoders.l3)
            importlib.reload(dali_l3)
            check(fn.decoders.l3)
            check(ops.decoders.L3())
        """
        imports = "import dali_l3, importlib, nvidia.dali\nfrom dali_l3 import _plugin\nfrom nvidia.dali import fn, ops"
        run_python(f"{imports}\n{PIPELINE}\n{textwrap.dedent(program)}")

    def test_the_wrapper_imports_dali_by_itself_and_goes_with_conditionals(self, tmp_path, run_python):
        conditional = """
            image = np.full((5, 6, 3), 9, np.uint8)
            data = np.frombuffer(dali_l3.encode(image), np.uint8)
            from nvidia.dali import fn, pipeline_def

            @pipeline_def(batch_size=2, num_threads=1, device_id=None, enable_conditionals=True)
            def pipeline():
                images = dali_l3.fn.decoders.l3(fn.external_source(lambda: [data, data]))
                if fn.reductions.max(images) > 5:
                    images = images + np.uint8(1)
                return images

            (output,) = pipeline().run()
            assert np.all(np.asarray(output[1]) == 10)
        """
        (tmp_path / "program.py").write_text(
            f"import dali_l3\n{PIPELINE}\ncheck(dali_l3.fn.decoders.l3)\n{textwrap.dedent(conditional)}"
        )
        run_python("import program")

    def test_the_wrappers_have_the_arguments_of_the_operators(self, run_python):
        of_volumes = {"crop_d", "crop_pos_z", "seed"}  # without effect
        # `subset` and ``class_proportions="balanced"`` in the wrappers
        of_samples = {"subset_files", "subset_indices", "subset_range", "class_balanced"}
        wrappers = [
            (decoders.l3, "decoders__L3", of_volumes, set()),
            (readers.multi_format, "readers__MultiFormat", of_samples, {"subset"}),
            (readers.liquid, "readers__Liquid", of_samples, {"subset"}),
        ]
        program = f"""
            import dali_l3, nvidia.dali.backend as backend, nvidia.dali.fn
            for name in {[schema for _, schema, _, _ in wrappers]}:
                schema = backend.GetSchema(name)
                names = [name for name in schema.GetArgumentNames() if not schema.IsDeprecatedArg(name)]
                print(schema.MaxNumInput(), *names)
        """
        printed = run_python(textwrap.dedent(program)).splitlines()
        for (wrapper, _, left_out, added), line in zip(wrappers, printed, strict=True):
            inputs, *arguments = line.split()
            kinds = {name: parameter.kind for name, parameter in inspect.signature(wrapper).parameters.items()}
            assert list(kinds.values()).count(inspect.Parameter.POSITIONAL_ONLY) == int(inputs), wrapper
            keywords = {name for name, kind in kinds.items() if kind == inspect.Parameter.KEYWORD_ONLY}
            wanted = {argument for argument in arguments if not argument.startswith("_")} - left_out
            assert keywords == wanted | added | {"device", "name"}, wrapper
            assert len(kinds) == len(keywords) + int(inputs), f"{wrapper} takes what has no name"

    def test_the_overloads_have_the_arguments_of_the_wrapper(self):
        """Type checkers see the overloads, help() the function."""
        tree = ast.parse(inspect.getsource(decoders))
        functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "l3"]
        *overloads, function = [node.args for node in functions]
        assert len(overloads) == 2

        def parameters(arguments):
            return [
                (argument.arg, ast.unparse(argument.annotation))
                for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
                if argument.arg != "on_error"
            ]

        for overload in overloads:
            assert parameters(overload) == parameters(function)
            assert list(map(ast.unparse, overload.defaults)) == list(map(ast.unparse, function.defaults))

    @pytest.mark.parametrize("module", [decoders, readers])
    def test_no_stub_hides_the_wrappers_from_type_checkers(self, module):
        assert not Path(module.__file__).with_suffix(".pyi").exists()

    def test_dali_is_not_imported(self, run_python):
        program = """
            import sys, numpy as np, dali_l3
            data = dali_l3.encode(np.zeros((4, 4), np.uint8))
            dali_l3.decode(data), dali_l3.peek(data), dali_l3.fn.decoders.l3
            print([name for name in sys.modules if name.startswith("nvidia.")])
        """
        assert run_python(textwrap.dedent(program)) == "[]"

    def test_dynamic_mode_imported_too_early_is_reported(self, run_python):
        printed = run_python(WARNINGS.format(imports="nvidia.dali.experimental.dynamic, dali_l3"))
        assert printed.startswith("<string>:6: nvidia.dali.experimental.dynamic was imported before dali_l3")

    @since(2, 2, "dynamic mode without a GPU")
    def test_dynamic_mode(self, run_python):
        program = """
            import numpy as np, dali_l3, nvidia.dali.experimental.dynamic as dynamic
            image = np.arange(70 * 80 * 3, dtype=np.uint16).astype(np.uint8).reshape(70, 80, 3)
            data = np.frombuffer(dali_l3.encode(image), np.uint8)
            for operator in (dynamic.decoders.l3, dynamic.decoders.image):
                assert np.array_equal(np.asarray(operator(data, device="cpu")), image), operator
        """
        run_python(textwrap.dedent(program))


class TestWithoutDali:
    def test_the_codec_works_and_the_operator_says_what_is_missing(self, run_python):
        program = """
            import sys
            sys.modules["nvidia"] = None  # as if it were not installed
            import os, numpy as np, dali_l3
            assert "NVIMGCODEC_EXTENSIONS_PATH" not in os.environ
            assert dali_l3.decode(dali_l3.encode(np.full((1, 1), 7, np.uint8))) == 7
            try:
                dali_l3.fn.decoders.l3(None)
            except ModuleNotFoundError as error:
                print(error.name)
        """
        environment = {name: value for name, value in os.environ.items() if name != "NVIMGCODEC_EXTENSIONS_PATH"}
        assert run_python(textwrap.dedent(program), env=environment).startswith("nvidia")


class TestExtensionsPath:
    PRINT = "; import os; print(os.environ['NVIMGCODEC_EXTENSIONS_PATH'])"

    @staticmethod
    def environment(value=None):
        environment = {name: text for name, text in os.environ.items() if name != "NVIMGCODEC_EXTENSIONS_PATH"}
        return environment if value is None else {**environment, "NVIMGCODEC_EXTENSIONS_PATH": value}

    def test_ours_comes_after_the_default(self, run_python):
        default, ours = run_python("import dali_l3" + self.PRINT, env=self.environment()).split(":")
        assert default.endswith(os.path.join("nvidia", "nvimgcodec", "extensions"))
        assert os.path.isdir(default)
        assert ours == str(_native.EXTENSIONS)
        assert len(os.listdir(ours)) == 1  # nvImageCodec loads every library in there

    def test_ours_comes_after_the_users(self, run_python):
        printed = run_python("import dali_l3" + self.PRINT, env=self.environment("/some/where:/else"))
        assert printed == f"/some/where:/else:{_native.EXTENSIONS}"

    def test_children_inherit_it_and_add_nothing(self, run_python):
        set_by_parent = f"/some/where:{_native.EXTENSIONS}"
        assert run_python("import dali_l3" + self.PRINT, env=self.environment(set_by_parent)) == set_by_parent

    @pytest.mark.parametrize(
        ("inherited", "imports", "warned"),
        [
            (None, "nvidia.nvimgcodec, dali_l3", True),
            (None, "dali_l3, nvidia.nvimgcodec", False),
            (None, "nvidia.dali, dali_l3", False),
            (str(_native.EXTENSIONS), "nvidia.nvimgcodec, dali_l3", False),
        ],
    )
    def test_a_codec_imported_too_early_is_reported(self, inherited, imports, warned, run_python):
        printed = run_python(WARNINGS.format(imports=imports), env=self.environment(inherited))
        assert printed.startswith("<string>:6: nvidia.nvimgcodec was imported before dali_l3") == warned


class TestProcessesAndThreads:
    @pytest.mark.parametrize(
        ("method", "processes", "imports"),
        [
            ("fork", 2, "import dali_l3; from nvidia.dali import fn"),
            ("fork", 1, "import dali_l3"),  # children import DALI themselves: one does as the other would
            ("spawn", 1, "import dali_l3; from nvidia.dali import fn"),
            ("forkserver", 1, "import dali_l3"),
        ],
    )
    def test_children_decode(self, method, processes, imports, tmp_path, run_python):
        (tmp_path / "work.py").write_text(f"{imports}\n{PIPELINE}\ndef work(_):\n    check(dali_l3.fn.decoders.l3)\n")
        program = f"""
            import multiprocessing, work
            with multiprocessing.get_context({method!r}).Pool({processes}) as pool:
                pool.map(work.work, range(2 * {processes}), chunksize=1)
        """
        run_python(textwrap.dedent(program))

    def test_threads_that_come_first(self, tmp_path, run_python):
        """Neither deadlock nor second registration when threads import both packages at once and go on to decode."""
        (tmp_path / "check.py").write_text(f"import dali_l3\n{PIPELINE}")
        program = """
            import importlib, threading, sys
            sys.setswitchinterval(1e-5)
            errors = []
            barrier = threading.Barrier(6)

            def work(number):
                barrier.wait()
                try:
                    importlib.import_module(["dali_l3", "nvidia.dali", "check"][number % 3])
                    import check
                    check.check(check.dali_l3.fn.decoders.l3)
                except BaseException as error:
                    errors.append(error)

            threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
            assert not errors, errors
        """
        run_python(textwrap.dedent(program))
