# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Releases for tests: obtained and installed by the collection's own code.

They come from the cache that people use, too ($KAFKAOPS_CACHE), so that CI downloads them once.
"""

from __future__ import annotations

import pathlib

from tests.support import collection_finder

collection_finder.install()

from ansible_collections.kafkaops.cluster.plugins.module_utils.progress import (  # noqa: E402
    Progress,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.supply import (  # noqa: E402
    distribution,
    installation,
)


def obtain(product, version, **settings):
    """Obtain a release as the action does; `settings` are further module arguments."""
    request = distribution.request_from({"product": product, "version": version, **settings})
    return distribution.obtain(request, Progress(emit=print))


def install(product, version, install_dir):
    """Obtain a release and install it below `install_dir` as on a host; returns its directory."""
    obtained = obtain(product, version)
    done = installation.install(str(install_dir), obtained.name, obtained.sha512, obtained.archive)
    return pathlib.Path(done.path)
