# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tests of the software supply share."""

import functools
import os

import pytest

from tests.support import software


@pytest.fixture(scope="session", name="installed")
def make_installed(tmp_path_factory):
    """A function (product, version) -> directory of that release, installed as on a host."""
    root = tmp_path_factory.mktemp("opt")
    return functools.lru_cache(maxsize=None)(
        lambda product, version: software.install(product, version, root)
    )


@pytest.fixture(autouse=True, scope="session")
def plain_environment():
    """Nothing of the caller's environment may change what a launcher does."""
    kept = dict(os.environ)
    for name in kept:
        ours = name in ("KAFKAOPS_CACHE", "KAFKAOPS_HOME")
        if not ours and (name.startswith("KAFKA") or name in ("CLASSPATH", "JVMFLAGS")):
            del os.environ[name]
    yield
    os.environ.update(kept)
