# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""What an instance is started with, from what its role collects: options of the module jvm_instance.

Both products have the same options of the JVM, and the same rule for secrets: what must not be seen is
apart from the rest, since Ansible shows the rest with `-vvv`. Pure: values in, values out.
"""

from __future__ import annotations

import hashlib
import os
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.java_options import (
    chooses_collector,
    public_options,
    secret_options_text,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.kafka import (
    properties_text,
    property_value,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.masking import is_secret, masked_text

# What the roles give the JVM as long as nobody chooses others. A later release of the collection may
# change it without a restart; what that release adds belongs here, too.
DEFAULT_GC = (
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-XX:MaxInlineLevel=15",
)
DEFAULT_HEAP_DUMP = "heap-dump.hprof"
# The file of a crash is one, overwritten: a crash that repeats itself must not fill the disk.
CRASH_FILE = "jvm-crash.log"
OPTIONS_FILE = "jvm.options"


def generation(
    start: Mapping[str, Any], jvm: Mapping[str, Any], config_dir: str, class_data_dir: str = ""
) -> Dict[str, Any]:
    """Return the options `generation` and `secrets` of the module jvm_instance.

    `start` is the first of them, apart from the options of the JVM; a file may be a mapping of
    properties, and `environment` may hold secrets; so does its `secrets`, text by file name. `jvm` is
    what `jvm_options` takes. `class_data_dir` is the directory of class-data archives, empty for none.
    """
    options, defaults = jvm_options(**jvm)
    files, secrets = {}, {name: text for name, text in start.get("secrets", {}).items() if text}
    for name, content in start["files"].items():
        if isinstance(content, Mapping):
            files[name], secret = map(properties_text, _apart(content))
            if secret:
                secrets[name] = secret
        else:
            files[name] = content
    public = public_options(options)
    hidden = secret_options_text(options)
    if hidden:
        # on a command line every user of the host would see it
        secrets[OPTIONS_FILE] = hidden
        public.append(f"@{config_dir}/current/{OPTIONS_FILE}")
    environment, secret_environment = _apart(start.get("environment", {}))
    shown = {name: value for name, value in start.items() if name != "secrets"}
    return {
        "generation": {
            **shown,
            "jvm_options": public,
            "default_options": defaults,
            "environment": environment,
            "files": files,
            "cds_archive": _class_data(class_data_dir, start["release"], start["java_home"]),
        },
        "secrets": {"files": secrets, "environment": secret_environment},
    }


def jvm_options(
    role: Sequence[str],
    own: Sequence[str],
    gc: Sequence[str],
    heap_dump_file: str,
    loggers: Mapping[str, Any],
    log_dir: str,
) -> Tuple[List[str], List[str]]:
    """Return the options of a JVM whose change is a reason to restart, and those that nobody has chosen.

    `role` are those of the product's role, `own` those of the inventory. A garbage collector among them
    replaces `gc` with its settings, since Java refuses two.
    """
    chosen = [*map(str, role)]
    defaults = [f"-XX:ErrorFile={log_dir}/{CRASH_FILE}"]
    if loggers:
        # No JVM reads it: it makes a changed level a reason to restart, and says so in words.
        levels = ",".join("=".join(pair) for pair in logger_levels(loggers))
        chosen.append(f"-Dkafkaops.loggers={levels}")
    by_default = tuple(gc) == DEFAULT_GC
    if any(chooses_collector(str(option)) for option in own):
        gc = ()
    elif not gc:
        # Java chooses; no JVM reads the property, which makes that a reason to restart.
        gc = ("-Dkafkaops.gc=chosen-by-java",)
    (defaults if by_default else chosen).extend(map(str, gc))
    if heap_dump_file:
        dump = ["-XX:+HeapDumpOnOutOfMemoryError", f"-XX:HeapDumpPath={heap_dump_file}"]
    else:
        dump = ["-XX:-HeapDumpOnOutOfMemoryError"]
    by_default = heap_dump_file == f"{log_dir}/{DEFAULT_HEAP_DUMP}"
    (defaults if by_default else chosen).extend(dump)
    return [*chosen, *map(str, own)], defaults


def logger_levels(loggers: Mapping[str, Any]) -> List[Tuple[str, str]]:
    """Return (logger, level) of a mapping, sorted; YAML reads a plain OFF as false."""
    return sorted(
        (str(name), "OFF" if level is False else str(level).upper())
        for name, level in loggers.items()
    )


def _apart(settings: Mapping[str, Any]) -> Tuple[Dict[str, str], Dict[str, str]]:
    """Return the entries that anybody may see, and the others, values as text.

    An entry is secret by its name, or for a password in a URL.
    """
    public: Dict[str, str] = {}
    secret: Dict[str, str] = {}
    for key, value in settings.items():
        hidden = is_secret(key) or masked_text(str(value)) != str(value)
        (secret if hidden else public)[key] = property_value(value)
    return public, secret


def _class_data(directory: str, release: str, java_home: str) -> str:
    """Return where the class-data archive of a release and a Java is kept."""
    if not directory:
        return ""
    java = hashlib.sha256(java_home.encode("utf-8")).hexdigest()[:8]
    return f"{directory}/{os.path.basename(release)}-{java}.jsa"
