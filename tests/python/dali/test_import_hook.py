"""when_imported: the callback runs once the module is there, whoever imports it, and leaves no trace in the module."""

import importlib
import importlib.resources
import inspect
import sys
import threading
import types

import pytest

from dali_l3._import_hook import when_imported


@pytest.fixture
def package(tmp_path, monkeypatch):
    """The name of an importable package with a submodule; afterwards neither it nor hooks for it remain."""
    name = "hooked_package"
    folder = tmp_path / name
    folder.mkdir()
    (folder / "__init__.py").write_text("import time\ntime.sleep(0.05)\nfrom . import inner\nvalue = 1\n")
    (folder / "inner.py").write_text("value = 2\n")
    (folder / "data.txt").write_text("data")
    monkeypatch.syspath_prepend(str(tmp_path))
    meta_path = sys.meta_path[:]
    yield name
    sys.meta_path[:] = meta_path
    for module in (name, f"{name}.inner"):
        sys.modules.pop(module, None)


def test_runs_right_after_the_import(package):
    calls = []
    when_imported(package, lambda: calls.append(sys.modules[package].value))
    assert calls == []
    assert package not in sys.modules
    importlib.import_module(package)
    assert calls == [1]
    importlib.import_module(package)
    assert calls == [1]


def test_runs_before_an_import_of_a_submodule_returns(package):
    calls = []
    when_imported(package, lambda: calls.append(package))
    assert importlib.import_module(f"{package}.inner").value == 2
    assert calls == [package]


def test_runs_at_once_where_the_module_is_imported(package):
    importlib.import_module(package)
    calls = []
    when_imported(package, lambda: calls.append(package))
    assert calls == [package]


def test_several_hooks_for_one_module(package):
    calls = []
    when_imported(package, lambda: calls.append("first"))
    when_imported(package, lambda: calls.append("second"))
    importlib.import_module(package)
    assert sorted(calls) == ["first", "second"]


def test_an_exception_leaves_the_import_statement_each_time(package):
    def refuse():
        raise RuntimeError("wrong version")

    when_imported(package, refuse)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="wrong version"):
            importlib.import_module(package)
        assert package not in sys.modules


def test_leaves_no_trace_in_the_module(package):
    when_imported(package, lambda: None)
    module = importlib.import_module(package)
    assert type(module.__loader__) is type(module.__spec__.loader) is importlib.machinery.SourceFileLoader
    assert "value = 1" in inspect.getsource(module)
    assert importlib.resources.files(package).joinpath("data.txt").read_text() == "data"


def test_a_module_that_is_looked_up_but_not_imported(package):
    calls = []
    when_imported(package, lambda: calls.append(package))
    spec = importlib.util.find_spec(package)
    assert spec.origin.endswith("__init__.py")
    assert spec.loader.get_source(package).startswith("import time")
    assert calls == []


def test_a_missing_module_stays_missing(package):
    when_imported("hooked_missing", lambda: None)
    with pytest.raises(ModuleNotFoundError, match="hooked_missing"):
        importlib.import_module("hooked_missing")


def test_a_hook_that_is_taken_off_the_path_leaves_the_search_to_others(package):
    class Taker:
        """Takes the hook, which comes next, off the path while the import system walks along it."""

        def find_spec(self, name, path=None, target=None):
            sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not hook]

    calls = []
    when_imported(package, lambda: calls.append(package))
    hook = sys.meta_path[0]
    sys.meta_path.insert(0, Taker())
    assert hook.find_spec(package) is not None
    assert importlib.import_module(package).value == 1
    assert hook not in sys.meta_path
    assert hook.find_spec(package) is None
    assert calls == []


def test_finders_without_find_spec_are_passed_over(package):
    calls = []
    sys.meta_path.insert(0, types.SimpleNamespace(find_module=lambda name, path=None: None))  # as before Python 3.4
    when_imported(package, lambda: calls.append(package))
    importlib.import_module(package)
    assert calls == [package]


def test_runs_again_on_reload(package):
    calls = []
    when_imported(package, lambda: calls.append(package))
    importlib.reload(importlib.import_module(package))
    assert calls == [package, package]


def test_threads_that_import_at_once_see_the_callback_done(package):
    done = []
    when_imported(package, lambda: done.append(package))
    seen = []
    barrier = threading.Barrier(8)

    def work():
        barrier.wait()
        importlib.import_module(package)
        seen.append(list(done))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [[package]] * 8
