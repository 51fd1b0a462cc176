# Copyright: (c) 2026, kafkaops.cluster contributors
# GNU General Public License v3.0-or-later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
# Private to the collection: names and behaviour may change without notice.
"""The generations of one instance on disk, below its configuration directory.

    generations/<fingerprint>/   complete, never changed: files, launch script, meaning.json ...
    next -> generations/...      what is staged: what the next turn is to use
    current -> generations/...   what a start uses, whoever starts it
    previous -> generations/...  what `current` was before
    fallback -> generations/...  only while a turn is under way: what ran before it
    answered -> generations/...  what last came up and answered: its data directories are in use
    overrides.json               what was changed without a restart (see overrides.py)

Directories belong to root where root writes them, the account may only read them: whoever has taken a
broker over can plant no link where root writes next.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

from ansible_collections.kafkaops.cluster.plugins.module_utils.files import (
    PARTIAL,
    is_new_mount,
    json_text,
    read_text,
    remove_partials,
    write_atomically,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.generation import (
    Generation,
    Meaning,
    shown_file,
    shown_lines,
    shown_start,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.launch import (
    GUARD,
    LAUNCH,
    guard_script,
    launch_script,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.overrides import (
    RECORD as OVERRIDES,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.instance.overrides import Overrides

KEPT = 5
MEANING = "meaning.json"
READY = "ready.json"
# The text of the unit or program, as it is installed with the next start.
DEFINITION = "service"
LINKS = ("current", "next", "previous", "fallback", "answered")
OWN_FILES = (LAUNCH, GUARD, MEANING, READY, DEFINITION)


@dataclass(frozen=True)
class Layout:
    """Where an instance lives. `uid`, `gid`: the account's numbers, or -1 to leave the owner alone."""

    name: str
    config_dir: str
    state_dir: str
    log_dir: str
    data_dirs: Tuple[str, ...] = ()
    uid: int = -1
    gid: int = -1

    @property
    def account(self) -> Optional[Tuple[int, int]]:
        """Return (uid, gid) of what the account owns, or None to leave the owner alone."""
        return (self.uid, self.gid) if self.uid >= 0 else None


@dataclass
class Staged:
    """What staging found: whether files changed, and their text before and after, fit to be shown."""

    changed: bool = False
    before: Dict[str, str] = field(default_factory=dict)
    after: Dict[str, str] = field(default_factory=dict)


class Store:
    """Reads and writes the generations, and the other files that an instance needs before its start."""

    def __init__(self, layout: Layout):
        self.layout = layout
        self._just_made = ""

    # What is there

    def path(self, link: str) -> str:
        """Return the path of `current`, `next`, `previous`, `fallback` or `answered`."""
        return os.path.join(self.layout.config_dir, link)

    def linked(self, link: str) -> Optional[str]:
        """Return the fingerprint that a link leads to, or None."""
        try:
            return os.path.basename(os.readlink(self.path(link)))
        except OSError:
            return None

    def directory(self, name: str) -> str:
        """Return the directory of the generation `name`."""
        return os.path.join(self.layout.config_dir, "generations", name)

    def meaning(self, name: Optional[str]) -> Optional[Meaning]:
        """Return the stored meaning of a generation, or None where it is unknown."""
        found = self._json(name, MEANING)
        return found if isinstance(found, dict) else None

    def ready(self, name: Optional[str]) -> Optional[List[Mapping[str, Any]]]:
        """Return the probes that a generation answers, or None where an earlier release kept none."""
        found = self._json(name, READY)
        return found if isinstance(found, list) else None

    def definition(self, name: str) -> str:
        """Return the text of the unit or program that a generation is started with."""
        text = read_text(os.path.join(self.directory(name), DEFINITION))
        if text is not None:
            return text
        # Earlier releases kept it in the meaning.
        return str(((self.meaning(name) or {}).get("unit") or {}).get("text") or "")

    def _json(self, name: Optional[str], file: str) -> Any:
        try:
            with open(os.path.join(self.directory(name or ""), file), encoding="utf-8") as handle:
                return json.load(handle) if name else None
        except (OSError, ValueError):
            return None

    # Staging

    def make_directories(self, staged: Staged, apply: bool) -> None:
        """Create what is absent; a configuration directory of an earlier release changes its owner.

        So does a disk that was mounted where data are to lie, as long as it is new, and nothing was ever started here:
        later an empty directory of root's is what lies below a disk that is gone.
        """
        begun = self.linked("current") is not None
        layout = self.layout
        own = [layout.config_dir, os.path.join(layout.config_dir, "generations")]
        for path in [*own, layout.log_dir, layout.state_dir, *layout.data_dirs]:
            owner = self._readers() if path in own else layout.account
            if not os.path.isdir(path) or path == self._just_made:
                staged.changed = True
                staged.after[path] = "directory\n"
                if apply:
                    self._make_directory(path, owner)
            elif owner and (
                os.stat(path).st_uid != owner[0]
                if path in own
                else not begun and is_new_mount(path)
            ):
                staged.changed = True
                if apply:
                    _set_mode_and_owner(path, 0o750, owner)

    def make_config_dir(self) -> None:
        """Create the configuration directory, which holds the lock, if it is absent."""
        if not os.path.isdir(self.layout.config_dir):
            self._make_directory(self.layout.config_dir, self._readers())
            self._just_made = self.layout.config_dir

    def write_seeds(self, seeds: Mapping[str, str], staged: Staged, apply: bool) -> None:
        """Write those files (path -> text) that are absent."""
        for path, text in sorted(seeds.items()):
            if not os.path.exists(path):
                staged.changed = True
                staged.after[path] = text
                if apply:
                    write_atomically(path, text, owner=self.layout.account)

    def stage(self, generation: Generation, staged: Staged, apply: bool) -> None:
        """Make `generation` the next one, and bring its files up to date if it is there already."""
        name = generation.fingerprint
        if self.linked("next") != name or not os.path.isdir(self.directory(name)):
            staged.changed = True
            self._describe(generation, staged)
            if apply:
                if not os.path.isdir(self.directory(name)):
                    self._write(generation)
                self.point("next", name)
        self._refresh(generation, staged, apply)

    def _refresh(self, generation: Generation, staged: Staged, apply: bool) -> None:
        """Bring files of the same meaning up to date: a later release of ours, or repair of damage.

        A file may be gone or altered by hand; the next start would otherwise use it under a fingerprint
        that says something else.
        """
        directory = self.directory(generation.fingerprint)
        if not os.path.isdir(directory):
            return
        if apply:
            remove_partials(directory)
        for name, (text, mode) in self._texts(generation).items():
            path = os.path.join(directory, name)
            old = read_text(path)
            if old == text:
                continue
            staged.changed = True
            if name == DEFINITION:
                staged.before[name] = shown_lines(old or "")
                staged.after[name] = shown_lines(text)
            elif name in generation.unwatched:
                staged.before[name], staged.after[name] = old or "", text
            elif name == MEANING:
                staged.before["start"] = shown_start(self.meaning(generation.fingerprint) or {})
                staged.after["start"] = shown_start(generation.meaning())
            else:
                staged.before[name] = shown_file(name, old)
                staged.after[name] = shown_file(name, text)
                if staged.before[name] == staged.after[name]:
                    # What differs is hidden: say at least that something does.
                    staged.before[name] += "(differs where it is hidden)\n"
            if apply:
                write_atomically(path, text, mode, self.layout.account)

    def _texts(self, generation: Generation) -> Dict[str, Tuple[str, int]]:
        """Return file name -> (text, mode) of everything that a generation's directory holds."""
        layout = self.layout
        texts = {name: (text, 0o640) for name, text in generation.files.items()}
        texts[LAUNCH] = launch_script(generation, layout.config_dir, layout.state_dir), 0o750
        if generation.guard:
            texts[GUARD] = guard_script(generation, layout.config_dir, sys.executable), 0o750
        texts[MEANING] = json_text(generation.meaning()), 0o640
        texts[READY] = json_text(list(generation.ready)), 0o640
        texts[DEFINITION] = generation.definition, 0o640
        return texts

    def _describe(self, generation: Generation, staged: Staged) -> None:
        """Note what differs between what was staged before, or is in effect, and `generation`."""
        old = self.linked("next") or self.linked("current")
        if old and os.path.isdir(self.directory(old)):
            for name in sorted({*generation.files, *os.listdir(self.directory(old))}):
                if name in OWN_FILES or name.startswith(PARTIAL) or name.endswith(".tmp"):
                    continue
                text = read_text(os.path.join(self.directory(old), name))
                if text is not None:
                    staged.before[name] = shown_file(name, text)
        for name, text in generation.files.items():
            staged.after[name] = shown_file(name, text)
        before = self.meaning(old)
        staged.before["start"] = shown_start(before) if before else ""
        staged.after["start"] = shown_start(generation.meaning())
        if old:
            staged.before[DEFINITION] = shown_lines(self.definition(old))
        staged.after[DEFINITION] = shown_lines(generation.definition)
        for name in [key for key in staged.before if staged.before[key] == staged.after.get(key)]:
            del staged.before[name], staged.after[name]

    def _write(self, generation: Generation) -> None:
        directory = self.directory(generation.fingerprint)
        temporary = os.path.join(os.path.dirname(directory), PARTIAL + os.path.basename(directory))
        shutil.rmtree(temporary, ignore_errors=True)
        os.mkdir(temporary, 0o700)
        _set_mode_and_owner(temporary, 0o750, self._readers())
        for name, (text, mode) in self._texts(generation).items():
            write_atomically(os.path.join(temporary, name), text, mode, self.layout.account)
        os.rename(temporary, directory)

    def point(self, link: str, name: Optional[str]) -> None:
        """Let a link lead to the generation `name`, by one rename; None removes the link."""
        temporary = f"{self.path(link)}.tmp"
        for path in [temporary] if name else [temporary, self.path(link)]:
            if os.path.lexists(path):
                os.unlink(path)
        if name:
            os.symlink(os.path.join("generations", name), temporary)
            os.replace(temporary, self.path(link))

    def write_overrides(self, overrides: Optional[Overrides]) -> None:
        """Write what was changed without a restart; None removes the file."""
        path = os.path.join(self.layout.config_dir, OVERRIDES)
        if overrides is not None:
            write_atomically(path, overrides.text(), 0o640, self._readers())
        elif os.path.lexists(path):
            os.unlink(path)

    def prune(self, running: Optional[str]) -> None:
        """Keep what a link or the running process needs, and the latest few for a look back."""
        root = os.path.join(self.layout.config_dir, "generations")
        needed = {self.linked(link) for link in LINKS}
        others = sorted(
            (
                name
                for name in os.listdir(root)
                if name not in needed and name != running and not name.startswith(PARTIAL)
            ),
            key=lambda name: os.path.getmtime(os.path.join(root, name)),
        )
        for name in others[:-KEPT]:
            # Under its own name it would count as complete, if this were killed half way.
            os.rename(os.path.join(root, name), os.path.join(root, PARTIAL + name))
        remove_partials(root)

    # Owners

    def _readers(self) -> Optional[Tuple[int, int]]:
        """Return the owner of directories that only we write: ourselves, and the account's group."""
        return (os.geteuid(), self.layout.gid) if self.layout.account else None

    def _make_directory(self, path: str, owner: Optional[Tuple[int, int]]) -> None:
        for directory in reversed(list(_missing(path))):
            try:
                os.mkdir(directory, 0o755)
            except FileExistsError:
                # Another member on this machine made the common parent, and sets its mode.
                if not os.path.isdir(directory):
                    raise
                continue
            _set_mode_and_owner(directory, 0o750 if directory == path else 0o755, owner)


def _missing(path: str) -> Iterator[str]:
    while not os.path.isdir(path):
        yield path
        path = os.path.dirname(path)


def _set_mode_and_owner(path: str, mode: int, owner: Optional[Tuple[int, int]]) -> None:
    """Set both on a directory and never on what a link there leads to."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        os.fchmod(descriptor, mode)
        if owner is not None:
            os.fchown(descriptor, *owner)
    finally:
        os.close(descriptor)
