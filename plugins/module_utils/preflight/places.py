# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""Checks of where the files of an instance lie: a unit sees them, and its account may enter and write them. Pure.

Only of instances of systemd: others run as whoever runs Ansible, and see what he sees.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from typing import Any, Iterator, List, Mapping, Optional, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.configuration.unit import (
    HOMES,
    OWN_TEMPORARY,
    RUN,
    normal_path,
    root_of,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.findings import found
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.members import (
    PLACES,
    Member,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.storage import (
    TEMPORARY,
    data_directories,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.world import World
from ansible_collections.kafkaops.cluster.plugins.module_utils.problem import WARNING, Problem

NOT_SEEN = (*HOMES, *OWN_TEMPORARY)
# Settings of a unit by which an operator says himself what it sees.
OWN_VIEW = frozenset(
    "BindPaths BindReadOnlyPaths PrivateTmp ProtectHome TemporaryFileSystem".split()
)
# A path in a home: at the beginning of a text, of a value in it, or of a URL of a file.
IN_A_HOME = re.compile(r"(?:^|(?<=[=:,\s\"'])|(?<=file://))(/(?:home|root|run/user)/[^\s,;:=\"']+)")
TEXTS = ("config", "host_config", "environment", "jvm_options", "gc_options")


@dataclass(frozen=True)
class Place:
    """One directory of an instance. `facts`: as of place_facts, empty where the host was silent."""

    product: str
    variable: str
    path: str
    facts: Mapping[str, Any]
    kind: str = ""
    written: bool = False


def places_of(member: Member, product: str) -> List[Place]:
    """The directories that an instance of systemd needs, with its Java."""
    known = member.product_facts(product).get("places") or {}
    found_here = []
    for kind in PLACES:
        variable = f"{product}_{kind}"
        # systemd makes it, and gives it to the account
        made = kind == "state_dir" and bool(root_of(member.text(variable), (RUN,)))
        written = kind in ("application_log_dir", "state_dir") and not made
        path = member.text(variable)
        found_here.append(Place(product, variable, path, known.get(kind, {}), kind, written))
    for each in data_directories(member):
        if each.product == product:
            # of data that are there already, the check of their owner tells
            written = not each.facts.get("owners")
            place = Place(product, each.variable, each.path, each.facts, "data", written)
            found_here.append(place)
    java = (member.facts or {}).get("java") or {}
    if java.get("home"):
        found_here.append(Place(product, "java_home", java["home"], java.get("place") or {}))
    return [each for each in found_here if each.path]


def check_places(world: World) -> Iterator[Problem]:
    """Directories that a boot empties, that a unit does not see, or that its account may not enter."""
    for member in world.members:
        if member.text("jvm_service_manager") != "systemd":
            continue
        for product, present in (("kafka", member.runs_kafka), ("zookeeper", member.is_server)):
            if present:
                places = places_of(member, product)
                yield from _emptied_at_boot(member, places)
                if not OWN_VIEW & set(_service_options(member, product)):
                    yield from _hidden(member, places)
                    yield from _hidden_dump(member, product)
                    yield from _hidden_files(member, product, places)
                yield from _closed(member, product, places)


def _service_options(member: Member, product: str) -> Mapping[str, Any]:
    section = member.mapping(f"{product}_unit_options").get("Service")
    return section if isinstance(section, Mapping) else {}


def _emptied_at_boot(member: Member, places: List[Place]) -> Iterator[Problem]:
    """Of what holds no data: after a boot the unit does not start without it, and only site.yml makes it again."""
    for each in places:
        if each.kind not in PLACES or not member.production:
            continue
        # that of the state is made by systemd at each start
        roots = [root for root in TEMPORARY if each.kind != "state_dir" or root != RUN]
        root = root_of(each.path, roots)
        if root:
            yield found(
                "directories.temporary",
                member.name,
                each.variable,
                each.path,
                f"{root} is emptied at a boot or by age, and the unit does not start without this directory",
                "choose a directory that stays",
            )


def _hidden(member: Member, places: List[Place]) -> Iterator[Problem]:
    for each in places:
        path, real = normal_path(each.path), normal_path(each.facts.get("real_path") or each.path)
        if path in NOT_SEEN:
            reason = f"a unit is not given all of {path}"
            remedy = f"name a directory below it, such as {path}/{each.product}"
        elif root_of(real, NOT_SEEN) and not root_of(path, NOT_SEEN):
            root = root_of(real, NOT_SEEN)
            reason = f"it leads to {real}, and in {root} the unit sees only directories that variables name"
            remedy = f"name {real} itself"
        else:
            continue
        yield found("directories.hidden", member.name, each.variable, each.path, reason, remedy)


def _hidden_dump(member: Member, product: str) -> Iterator[Problem]:
    variable = f"{product}_heap_dump_file"
    folder = posixpath.dirname(member.text(variable))
    if folder and normal_path(folder) in NOT_SEEN:
        yield found(
            "directories.hidden",
            member.name,
            variable,
            member.text(variable),
            f"a unit is not given all of {folder}, so that a heap dump there would be lost",
            "name a file in a directory of its own, which the account may write into",
            level=WARNING,
        )


def _hidden_files(member: Member, product: str, places: List[Place]) -> Iterator[Problem]:
    """Key stores, agents and the like, named in settings whose values are the product's matter."""
    shown = [normal_path(each.path) for each in places]
    for variable, text in _texts(member, product):
        for path in IN_A_HOME.findall(text):
            if root_of(path, shown):
                continue
            folder = posixpath.dirname(path)
            bound = path if folder in HOMES else folder
            yield found(
                "directories.hidden",
                member.name,
                variable,
                path,
                f"the unit sees in {root_of(path, HOMES)} only directories that variables name",
                f"put the file elsewhere, or set {product}_unit_options to"
                f" {{Service: {{ProtectHome: tmpfs, BindReadOnlyPaths: {bound}}}}}",
            )


def _texts(member: Member, product: str) -> Iterator[Tuple[str, str]]:
    """(variable, value) of settings in which a path may stand."""
    for name in TEXTS:
        variable = f"{product}_{name}"
        for key, value in member.mapping(variable).items():
            yield f"{variable}.{key}", str(value)
        for value in member.items(variable):
            yield variable, str(value)


def _closed(member: Member, product: str, places: List[Place]) -> Iterator[Problem]:
    name = member.text(f"{product}_account")
    account = member.product_facts(product).get("account")
    # the account is given its disks, as long as nothing has run here
    new = not member.product_facts(product).get("current")
    for each in places:
        barred = [
            step["path"] for step in each.facts.get("closed") or () if not _may(account, step, 0o1)
        ]
        own = None if new and each.facts.get("new_mount") else each.facts.get("own")
        if barred:
            reason = f"the account {name} may not enter {barred[0]}"
            remedy = f"chmod o+x {barred[0]}, or choose a directory elsewhere"
        elif each.written and own and not _may(account, own, 0o3):
            reason = f"it has uid {own['uid']} and mode {own['mode']}: the account {name} may not write into it"
            remedy = f"chown {name}: {each.path}"
            if not account:
                remedy = "remove it where it is empty: it is made for the account, which is not there yet"
        else:
            continue
        yield found("directories.closed", member.name, each.variable, each.path, reason, remedy)


def _may(account: Optional[Mapping[str, Any]], rights: Mapping[str, Any], wanted: int) -> bool:
    """Whether an account has these rights (of w=2, x=1) on a directory; one that is not there has those of others."""
    mode = int(rights["mode"], 8)
    if account and account["uid"] == rights["uid"]:
        mode >>= 6
    elif account and rights["gid"] in account.get("gids", ()):
        mode >>= 3
    return mode & wanted == wanted
