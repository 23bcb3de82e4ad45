from __future__ import annotations

import subprocess

import pytest

from bench import build


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return build.cache()


def test_a_finished_build_is_found_again(cache, monkeypatch) -> None:
    """Nothing is downloaded, configured or compiled a second time."""
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("built again"))
    (cache / "bin").mkdir(parents=True)
    (cache / "bin" / "llama-server").touch()

    assert build.ensure() == cache / "bin" / "llama-server"


def test_each_version_has_its_own_build(cache, tmp_path) -> None:
    """The cache lies outside the repository, and an upgrade does not find the old server."""
    assert cache == tmp_path / "b3node" / "bench" / build.version()


def test_the_packages_libraries_come_first() -> None:
    """Both servers compute with the same machine code: what was compiled beside the server is a fallback."""
    first, second = build.library_path().split(":")

    assert first == str(build.package_libraries())
    assert second == str(build.cache() / "bin")


def test_a_failed_step_shows_the_end_of_its_log(cache) -> None:
    """Whoever runs the benchmark learns what went wrong without reading a long log."""
    cache.mkdir(parents=True)

    with pytest.raises(build.BuildError, match="no room left"):
        build._run(["sh", "-c", "echo no room left; exit 3"])
