"""The site that `make docs` builds from the pages in this folder, the docstrings and the C headers."""

import re
import subprocess
from pathlib import Path
from typing import Any

from dali_l3.version import __version__

ROOT = Path(__file__).parent.parent

project = "dali_l3"
copyright = "the dali_l3 authors"
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "hawkmoth"]
exclude_patterns = ["_site"]
nitpicky = True
nitpick_ignore_regex = [  # types of other projects, named as their users know them
    ("py:class", r"(Array|Buffer|DALI|DataNode|NDArray|nvidia\.|numpy\.|np\.|array-like|collections\.|Path).*"),
    ("py:class", r"(contextlib|os|npt|torch)\..*"),
    ("py:class", r"(HasArrayInterface|Image|Out|Profile|Roi|Rois|StrPath|Subset)"),  # names of our own for types
    ("c:identifier", r"u?int\d+_t|size_t|CUstream_st|cudaStream_t"),
]

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_mock_imports = ["nvidia", "torch"]


def _system_includes() -> list[str]:
    """The compiler's own folders of headers: libclang from PyPI brings none."""
    said = subprocess.run(["g++", "-xc", "-E", "-v", "/dev/null"], capture_output=True, text=True, check=True).stderr
    return re.findall(r"^ (/\S+)$", said, re.MULTILINE)


hawkmoth_root = str(ROOT / "csrc/l3/include")
hawkmoth_clang = [f"-I{folder}" for folder in (hawkmoth_root, *_system_includes())]
hawkmoth_autoconf = []  # which would look for clang

html_theme = "furo"
html_title = f"dali_l3 {__version__}"


_FIELD = re.compile(r"([a-z_]\w*(?:, [a-z_]\w*)*): (?=\S)")


def _mark_fields(app: object, what: str, name: str, item: object, options: object, lines: list[str]) -> None:
    """Makes lists of fields of lines such as "seed: of the draw", as most docstrings of this project have them."""
    if any(line.startswith("Args:") for line in lines):
        return  # napoleon's
    marked: list[str] = []
    in_fields = False
    for line in lines:
        is_field = bool(_FIELD.match(line)) and (in_fields or not marked or not marked[-1].strip())
        if in_fields and line.strip() and not is_field and not line.startswith(" "):
            marked.append("")
        in_fields = is_field or (in_fields and line.startswith("    "))
        marked.append(_FIELD.sub(r":\1: ", line, count=1) if is_field else line)
    lines[:] = marked


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", _mark_fields, priority=400)
