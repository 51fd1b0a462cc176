# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""Options of the JVM: which of them a JVM on the host can be asked to judge, and its answers. Pure."""

from __future__ import annotations

import re
from typing import Dict, Iterator, List

from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.java_options import (
    chooses_collector,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.start import DEFAULT_GC
from ansible_collections.kafkaops.cluster.plugins.module_utils.masking import (
    masked_option,
    masked_text,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.findings import found
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.members import Member
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.world import World
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import Problem

HEAP_OPTION = re.compile(r"^-(Xm[sx]|XX:(Initial|Max)HeapSize=)")
# What a JVM would do at once, and not only read: open ports and files, load other code. Properties
# (-D) are never wrong to a JVM, and may hold passwords.
NOT_TRIED = re.compile(
    r"^(-D|-agent|-javaagent|-Xlog|-Xrun|-Xdebug|-Xshare:dump|@|-XX:(Flags|VMOptionsFile|LogFile|"
    r"\+LogVMOutput|\+AlwaysPreTouch|StartFlightRecording|FlightRecorderOptions|"
    r"ArchiveClassesAtExit|DumpLoadedClassList))"
)


def options_to_try(member: Member, product: str) -> List[str]:
    """The options that the inventory gives this product's JVM, as far as they can be tried.

    Empty where the inventory has none of its own: the roles' own are known to work.
    """
    heap = member.text(f"{product}_heap")
    if not _chosen(member, product) or not heap:
        return []
    options = _collector(member, product) + _texts(member, f"{product}_jvm_options")
    tried = [each for each in options if each[:1] == "-" and not NOT_TRIED.match(each)]
    return [f"-Xms{heap}", f"-Xmx{heap}"] + tried


def _texts(member: Member, variable: str) -> List[str]:
    return [str(each) for each in member.items(variable)]


def _collector(member: Member, product: str) -> List[str]:
    """The options of the garbage collector, none where the other options choose one."""
    own = _texts(member, f"{product}_jvm_options")
    chosen = any(chooses_collector(each) for each in own)
    return [] if chosen else _texts(member, f"{product}_gc_options")


def _chosen(member: Member, product: str) -> Dict[str, List[str]]:
    """variable -> options that the inventory has chosen, and that reach the JVM."""
    collector = _collector(member, product)
    if tuple(collector) == DEFAULT_GC:
        collector = []
    options = {
        f"{product}_gc_options": collector,
        f"{product}_jvm_options": _texts(member, f"{product}_jvm_options"),
    }
    return {variable: texts for variable, texts in options.items() if texts}


# What a JVM says of a heap that the machine cannot give.
_NO_ROOM = re.compile(r"commit_memory|reserve enough space|insufficient memory", re.IGNORECASE)


def check_jvm_options(world: World) -> Iterator[Problem]:
    """Texts that are not options, options that set the heap, and those that the host's JVM refuses."""
    for member in world.members:
        for product, has in (("kafka", member.runs_kafka), ("zookeeper", member.is_server)):
            if has:
                yield from _options(member, product)


def _options(member: Member, product: str) -> Iterator[Problem]:
    chosen = _chosen(member, product)
    for variable, each in ((name, each) for name, texts in chosen.items() for each in texts):
        if HEAP_OPTION.match(each):
            reason = f"{product}_heap={member.text(f'{product}_heap')} says it otherwise"
            remedy = f"set {product}_heap, and leave the option out"
            yield found("jvm.options", member.name, variable, each, reason, remedy)
        elif each[:1] not in ("-", "@"):
            reason = "not an option: Java would take it for the class to run"
            value = masked_option(each)
            yield found("jvm.options", member.name, variable, value, reason, "begin it with -")
    refusal = member.product_facts(product).get("jvm_refusal")
    java = (member.facts or {}).get("java") or {}
    # A Java that does not start at all says nothing about options; it has a finding of its own.
    if refusal and not java.get("refusal") and _NO_ROOM.search(str(refusal)):
        heap = f"{product}_heap"
        reason = f"Java {java.get('version')} does not get so much memory here: {masked_text(str(refusal))}"
        remedy = f"lower {heap} to what the host can spare"
        yield found("jvm.options", member.name, heap, member.text(heap), reason, remedy)
    elif refusal and not java.get("refusal"):
        variable = " and ".join(chosen) or f"{product}_jvm_options"
        options = [masked_option(each) for texts in chosen.values() for each in texts]
        reason = f"Java {java.get('version')} refuses to start with it: {masked_text(str(refusal))}"
        yield found("jvm.options", member.name, variable, options, reason)
