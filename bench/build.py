"""Builds `llama-server` once, from the source distribution of the installed llama-cpp-python.

That is the same llama.cpp commit as the library that b3node runs on. It goes further: the server is started
with the package's own shared libraries (`library_path`), so both servers compute with the same machine code,
whatever flags the package was compiled with, and differ only in what they do around it.

Everything lies under `${XDG_CACHE_HOME:-~/.cache}/b3node/bench/<version>`; a finished build is found there
again. Needs pip, a C++ compiler, and cmake (of the system, or `pip install cmake`).
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
from importlib import metadata
from pathlib import Path
from typing import Final

PACKAGE: Final = "llama-cpp-python"
JOBS: Final = 2
"""Compilers at once: the build is polite, it may share the machine."""
_OPTIONS: Final = {
    "CMAKE_BUILD_TYPE": "Release",
    "BUILD_SHARED_LIBS": "ON",
    "CMAKE_SKIP_BUILD_RPATH": "ON",  # libraries are found by `library_path` alone
    "GGML_NATIVE": "ON",
    "LLAMA_BUILD_SERVER": "ON",
    "LLAMA_BUILD_TESTS": "OFF",
    "LLAMA_BUILD_EXAMPLES": "OFF",
    "LLAMA_BUILD_APP": "OFF",
    "LLAMA_CURL": "OFF",
    "LLAMA_OPENSSL": "OFF",
    "LLAMA_BUILD_UI": "OFF",  # neither built with npm nor downloaded: the server then has no assets
    "LLAMA_USE_PREBUILT_UI": "OFF",
}


class BuildError(Exception):
    """The server cannot be built; the message is for the person at the terminal."""


def version() -> str:
    """The installed llama-cpp-python's version."""
    return metadata.version(PACKAGE)


def cache() -> Path:
    """Where this version's source and build lie."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "b3node" / "bench" / version()


def binary() -> Path:
    """Where the finished server lies, or will."""
    return cache() / "bin" / "llama-server"


def library_path() -> str:
    """`LD_LIBRARY_PATH` for the server: the package's libraries first, then what only the server needs."""
    return f"{package_libraries()}:{cache() / 'bin'}"


def package_libraries() -> Path:
    """The directory of the package's shared libraries. Does not import the package."""
    spec = importlib.util.find_spec("llama_cpp")
    if spec is None or spec.origin is None:
        raise BuildError(f"{PACKAGE} is not installed")
    return Path(spec.origin).parent / "lib"


def ensure() -> Path:
    """The server's path, built first where it is missing (ten minutes on two cores). Raises `BuildError`."""
    if not binary().is_file():
        cmake = shutil.which("cmake", path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}")
        if cmake is None:
            raise BuildError("cmake is needed to build llama-server; try: pip install cmake")
        print(f"Building llama-server of {PACKAGE} {version()} once, in {cache()} ...", flush=True)
        cache().mkdir(parents=True, exist_ok=True)
        _build(cmake, _source())
    return binary()


def _source() -> Path:
    """llama.cpp's source tree, downloaded by pip and unpacked where it is missing."""
    folder = cache() / "source"
    if not folder.is_dir():
        archive = _download()
        fresh = cache() / "source.part"
        shutil.rmtree(fresh, ignore_errors=True)
        with tarfile.open(archive) as tar:
            tar.extractall(fresh, filter="data")
        fresh.rename(folder)
    found = sorted(folder.glob("*/vendor/llama.cpp"))
    if not found:
        raise BuildError(f"{folder} has no llama.cpp in it; delete it and try again")
    return found[0]


def _download() -> Path:
    folder = cache() / "sdist"
    wanted = ["--no-deps", "--no-binary", PACKAGE, f"{PACKAGE}=={version()}"]
    _run([sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(folder), *wanted])
    return next(folder.glob("*.tar.gz"))


def _build(cmake: str, source: Path) -> None:
    """Configures, builds the one target, and puts what it made into `bin`."""
    tree = cache() / "build"
    options = [f"-D{name}={value}" for name, value in _OPTIONS.items()]
    commit = f"-DLLAMA_BUILD_COMMIT={PACKAGE}-{version()}"  # not that of a repository around the cache
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    _run([cmake, "-S", str(source), "-B", str(tree), *generator, commit, *options])
    _run(["nice", "-n", "19", cmake, "--build", str(tree), "--target", "llama-server", "-j", str(JOBS)])
    fresh = cache() / "bin.part"
    shutil.rmtree(fresh, ignore_errors=True)
    shutil.copytree(tree / "bin", fresh, symlinks=True)
    fresh.rename(cache() / "bin")


def _run(command: list[str]) -> None:
    """Runs a step with its output in `build.log`. Raises `BuildError` with the end of it."""
    log = cache() / "build.log"
    with log.open("ab") as out:
        status = subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, check=False).returncode
    if status:
        tail = "\n".join(log.read_text("utf-8", "replace").splitlines()[-15:])
        raise BuildError(f"{' '.join(command[:4])} ... failed; {log} ends with:\n{tail}")
