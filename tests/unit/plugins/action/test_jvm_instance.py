# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the action answers itself makes no difference: the same tasks here and by the module."""

from __future__ import annotations

import json

import pytest

from tests.support.here_and_sent import both

SECRET = "correct-horse"
SETTINGS = {
    "name": "one",
    "manager": "supervisor",
    **{f"{each}_dir": "{{ place }}/%s" % each for each in ("config", "state", "log", "supervisor")},
}
STAGED = {
    **SETTINGS,
    "generation": {
        "release": "{{ place }}/kafka_2.13-3.9.2",
        "java_home": "/usr/lib/java",
        "main_class": "Main",
        "classpath": "{{ 'libs' }}/*",
        # values and a key that are no texts
        "environment": {"THREADS": "{{ 4 + 4 }}", 1: True},
        "files": {"server.properties": "{{ 'broker.id=' ~ 1 }}\n"},
    },
    "secrets": {"files": {"server.properties": f"password={SECRET}\n"}},
}
TASKS = {
    "first": STAGED,
    "second": STAGED,
    "look": {**SETTINGS, "state": "probe", "explain": True},
    "no_room": {**STAGED, "config_dir": "/proc/none"},
}
# In check mode these neither start nor stop anything.
FORETOLD = {
    state: {**SETTINGS, "state": state} for state in ("started", "stopped", "removed", "deleted")
}


@pytest.mark.parametrize("options", [(), ("--check",)], ids=["done", "checked"])
def test_the_action_returns_what_the_module_returns(tmp_path, options):
    tasks = {**TASKS, **(FORETOLD if options else {})}
    output, here, sent = both(tmp_path, "kafkaops.cluster.jvm_instance", tasks, *options)
    assert SECRET not in output
    for each in (*here.values(), *sent.values()):
        each.pop("fingerprint", None)  # the directory is part of what it stands for
    assert here == sent
    assert here["first"]["changed"] and here["second"]["changed"] == bool(options)
    assert "broker.id=1" in json.dumps(here["first"]["diff"])
    assert not options or here["no_room"]["changed"] and here["started"]["changed"]
    assert not options or here["deleted"]["deleted"] == []
    assert options or here["no_room"]["failed"]
