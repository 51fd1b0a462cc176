# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make `ansible_collections.kafkaops.cluster` importable from the checkout under plain pytest."""

import os
import sys

import pytest
from ansible.utils.vars import load_extra_vars
from hypothesis import settings

if not any(type(finder).__name__ == "_AnsibleCollectionFinder" for finder in sys.meta_path):
    from ansible.utils.collection_loader._collection_finder import _AnsibleCollectionFinder

    root = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
    # PYTHONPATH does not do it: a bundled `ansible_collections` package would win.
    _AnsibleCollectionFinder(paths=[os.path.join(root, "collections"), *sys.path])._install()

# How long an example takes says how busy the machine is.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")


@pytest.fixture
def command_line(monkeypatch):
    """Makes of its arguments what was given with -e, for the lookup by which playbooks and roles read it."""

    def give(**variables):
        monkeypatch.setattr(load_extra_vars, "extra_vars", variables, raising=False)

    return give
