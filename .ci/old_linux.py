"""Makes compilers for Linux with glibc 2.28 where it is newer, such as on Debian 12: FOLDER/gcc and FOLDER/g++.

    python .ci/old_linux.py FOLDER

They are the system's, with another C library: the headers and stubs for glibc 2.28 that the package ziglang brings.
From the C++ library they link what manylinux_2_28 allows; what came later is linked in, from libstdc++.a. The compilers
of the manylinux images do the same. Whatever is missing all the same is an error of the linker.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import ziglang

GLIBC = (2, 28)
OLD_SYMBOLS = {"GLIBCXX": (3, 4, 24), "CXXABI": (1, 3, 11)}  # the newest of manylinux_2_28

COMPILER = """#!/bin/sh
exec {program} -nostdinc {includes} -D__GLIBC_MINOR__={minor} -L{libraries} -Wl,--exclude-libs,ALL "$@"
"""


def run(*command: str | Path, **options) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **options).stdout.strip()


def make_c_library(zig: Path, folder: Path) -> None:
    """zig makes stubs of the C library when it links something, and leaves them in its cache."""
    cache = folder / "cache"
    (folder / "empty.c").touch()
    target = "x86_64-linux-gnu.{}.{}".format(*GLIBC)
    caches = {"ZIG_GLOBAL_CACHE_DIR": str(cache), "ZIG_LOCAL_CACHE_DIR": str(cache)}
    command = (zig / "zig", "cc", "-target", target, "-shared", folder / "empty.c", "-o", folder / "empty.so")
    run(*command, env={**os.environ, **caches})
    for library in [*cache.glob("o/*/lib*.so.*"), *cache.glob("o/*/libc_nonshared.a")]:
        library.rename(folder / library.name)
    for name, library in {"pthread": "so.0", "dl": "so.2", "rt": "so.1", "m": "so.6"}.items():
        (folder / f"lib{name}.so").write_text(f"INPUT(lib{name}.{library})\n")
    # Later versions hold these too, so that nothing asks for them by name.
    parts = "libpthread.so.0 libdl.so.2 librt.so.1 libld.so.2"
    (folder / "libc.so").write_text(f"INPUT(libc.so.6 libc_nonshared.a AS_NEEDED({parts}))\n")


def is_old(version: str) -> bool:
    """Whether a version of symbols, such as GLIBCXX_3.4.9, is allowed."""
    family, _, number = version.partition("_")
    return not number[0].isdigit() or tuple(map(int, number.split("."))) <= OLD_SYMBOLS[family]


def make_cxx_library(folder: Path) -> None:
    """A stub of the system's C++ library, with the old symbols, before the archive, which has them all."""
    table = run("readelf", "--dyn-syms", "--wide", run("g++", "-print-file-name=libstdc++.so.6"))
    symbols = re.findall(r" (\d+) (FUNC|OBJECT|TLS) .* (\S+)@@((?:GLIBCXX|CXXABI)_\S+)", table)
    kinds = {"FUNC": "function", "OBJECT": "object", "TLS": "tls_object"}
    names: dict[str, list[str]] = {}
    lines = []
    for size, kind, name, version in symbols:
        if is_old(version):
            names.setdefault(version, []).append(name)
            lines.append('.section .tbss,"awT",@nobits' if kind == "TLS" else ".text")
            lines += [f".globl {name}", f".type {name}, @{kinds[kind]}", f".size {name}, {size}", f"{name}: .zero 8"]
    (folder / "stub.s").write_text("\n".join(lines) + "\n")
    versions = "".join(f"{version} {{ {'; '.join(found)}; }};\n" for version, found in names.items())
    (folder / "stub.map").write_text(versions)
    link = ("-shared", "-nostdlib", "-Wl,-soname,libstdc++.so.6", f"-Wl,--version-script={folder / 'stub.map'}")
    run("gcc", *link, folder / "stub.s", "-o", folder / "libstdc++.so.6")

    # The archive reads a variable of later C libraries, which may always say: several threads.
    (folder / "shim.c").write_text('__attribute__((visibility("hidden"))) char __libc_single_threaded = 0;\n')
    run("gcc", "-c", "-fPIC", folder / "shim.c", "-o", folder / "shim.o")
    run("ar", "rc", folder / "libshim.a", folder / "shim.o")
    archive = run("g++", "-print-file-name=libstdc++.a")
    (folder / "libstdc++.so").write_text(f"INPUT(libstdc++.so.6 {archive} libshim.a)\n")


def make_headers(zig: Path, folder: Path) -> list[Path]:
    """The folders where the compilers look for headers: those of g++ itself, and zig's of the C library."""
    verbose = run("g++", "-E", "-v", "-x", "c++", "/dev/null", stderr=subprocess.STDOUT)
    own = [Path(folder) for folder in re.findall(r"^ (/\S*/(?:c\+\+|gcc)/\S+)$", verbose, re.MULTILINE)]

    # Without what tells g++'s headers that the C library is newer.
    (config,) = (path for path in (folder / "bits/c++config.h" for folder in own) if path.exists())
    changed = folder / "include" / "bits" / "c++config.h"
    changed.parent.mkdir(parents=True)
    newer = r"^#define _GLIBCXX_USE_PTHREAD_\w+_CLOCK\w+ 1$"
    changed.write_text(re.sub(newer, "", config.read_text(), flags=re.MULTILINE))
    generic = folder / "generic-glibc"
    include = zig / "lib" / "libc" / "include"
    shutil.copytree(include / generic.name, generic, ignore=shutil.ignore_patterns("single_threaded.h"))
    linux = [include / "x86-linux-any", include / "any-linux-any"]
    return [changed.parents[1], *own, include / "x86-linux-gnu", generic, *linux]


def main() -> None:
    folder = Path(sys.argv[1]).resolve()
    folder.mkdir()
    zig = Path(ziglang.__file__).parent
    make_c_library(zig, folder)
    make_cxx_library(folder)
    includes = " ".join(f"-isystem {shlex.quote(str(path))}" for path in make_headers(zig, folder))
    settings = {"includes": includes, "minor": GLIBC[1], "libraries": shlex.quote(str(folder))}
    for name in ("gcc", "g++"):
        compiler = folder / name
        compiler.write_text(COMPILER.format(program=shutil.which(name), **settings))
        compiler.chmod(0o755)


if __name__ == "__main__":
    main()
