"""The versions of DALI in pyproject.toml: the list that is built and tested, and the ranges that pip installs."""

import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from dali_l3 import _adapter_build

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PYPROJECT = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8"))
VERSIONS = [Version(version) for version in PYPROJECT["tool"]["dali-l3"]["dali"]]


def test_the_package_needs_no_dali():
    assert not [name for name in PYPROJECT["project"]["dependencies"] if "nvidia" in name]


def test_the_versions_are_in_order_and_begin_with_the_oldest_that_compiles():
    assert sorted(VERSIONS) == VERSIONS
    assert VERSIONS[0].release[:2] == _adapter_build.OLDEST


@pytest.mark.parametrize("extra", ["cuda12", "cuda13"])
def test_an_extra_installs_the_versions_of_the_list_and_no_others(extra):
    (requirement,) = map(Requirement, PYPROJECT["project"]["optional-dependencies"][extra])
    assert requirement.name == f"nvidia-dali-{extra}0"
    assert all(version in requirement.specifier for version in VERSIONS)
    major, minor = VERSIONS[-1].release[:2]
    assert f"{major}.{minor + 1}.0" not in requirement.specifier
    assert f"{VERSIONS[0].major}.{VERSIONS[0].minor - 1}.0" not in requirement.specifier
