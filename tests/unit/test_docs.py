# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is documented is what is there: variables and their defaults, options and theirs, commands."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
import yaml

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.configs.plan_broker_settings import (
    LIMITS,
    POOLS,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.catalogue import DRILLS
from ansible_collections.kafkaops.cluster.plugins.module_utils.drill.verdict import (
    AS_EXPECTED,
    COLUMNS,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.preflight.judge import (
    NEVER_ACCEPTED,
)
from ansible_collections.kafkaops.cluster.plugins.module_utils.supply.tools import (
    KAFKA_TOOLS,
    ZOOKEEPER_TOOLS,
)

ROOT = Path(__file__).resolve().parents[2]
# Variables that have no default, because their absence means something: "keep or choose an id".
WITHOUT_DEFAULT = {"kafka_broker_id", "zookeeper_myid"}


def load(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


generate_docs = load("generate_docs")
ROLES = sorted(path.name for path in ROOT.glob("roles/*") if (path / "tasks").is_dir())


@pytest.mark.parametrize("role", ROLES)
def test_every_role_describes_its_variables(role):
    assert (ROOT / "roles" / role / "meta" / "argument_specs.yml").is_file()


@pytest.mark.parametrize("role", generate_docs.roles())
def test_every_default_is_described_and_none_is_invented(role):
    described = set(generate_docs.variables_entry(role).get("options") or {})
    assert described - WITHOUT_DEFAULT == set(generate_docs.defaults_of(role))


@pytest.mark.parametrize("role", generate_docs.roles())
def test_described_defaults_are_those_of_the_role(role):
    options = generate_docs.variables_entry(role).get("options") or {}
    wrong = {}
    for name, value in generate_docs.defaults_of(role).items():
        said = options.get(name, {}).get("default")
        wanted = None if generate_docs.is_computed(value) else value
        if said != wanted or type(said) is not type(wanted):
            wrong[name] = f"described as {said!r}, is {wanted!r}"
    assert not wrong


@pytest.mark.parametrize("role", generate_docs.roles())
def test_a_default_that_is_only_called_computed_is_told_in_words(role):
    options, defaults = generate_docs.variables_entry(role)["options"], generate_docs.defaults_of(
        role
    )
    assert not [
        name
        for name, option in options.items()
        if generate_docs.shown_default(name, option, defaults) == "computed"
        and "by default" not in generate_docs.prose(option["description"]).lower()
    ]


def descriptions(spec):
    """Every item of every description of an argument spec."""
    for key, value in spec.items():
        if key == "description" and not isinstance(value, dict):
            yield from [value] if isinstance(value, str) else value
        elif isinstance(value, dict):
            yield from descriptions(value)


@pytest.mark.parametrize("role", ROLES)
def test_no_sentence_is_cut_at_a_comma(role):
    """As YAML does with a list of one sentence in brackets and without quotes."""
    text = (ROOT / "roles" / role / "meta" / "argument_specs.yml").read_text(encoding="utf-8")
    found = list(descriptions(yaml.safe_load(text)))
    assert found and not [item for item in found if not re.match(r"[A-Z]", item)]


@pytest.mark.parametrize("role", generate_docs.roles())
def test_defaults_are_among_their_choices_and_of_their_type(role):
    types = {"str": str, "int": int, "bool": bool, "list": list, "dict": dict, "raw": object}
    for name, option in (generate_docs.variables_entry(role).get("options") or {}).items():
        if "default" in option:
            assert isinstance(option["default"], types[option["type"]]), name
            chosen = option["default"] if option["type"] == "list" else [option["default"]]
            assert all(item in option.get("choices", [item]) for item in chosen), name


@pytest.mark.parametrize("role", generate_docs.roles())
def test_every_entry_point_that_is_described_exists_and_the_other_way_round(role):
    files = {path.stem for path in (ROOT / "roles" / role / "tasks").glob("*.yml")}
    described = set(generate_docs.spec_of(role))
    # a role of entry points only describes the variables that they share under a name of their own
    assert described - {"main", "settings"} <= files
    # what other roles and playbooks call must be described
    called = set()
    for path in [*ROOT.glob("playbooks/**/*.yml"), *ROOT.glob("roles/*/tasks/*.yml")]:
        pattern = rf"name: kafkaops\.cluster\.{role}\s+tasks_from: (\w+)"
        called |= set(re.findall(pattern, path.read_text(encoding="utf-8")))
    assert called <= described


def test_a_shared_variable_has_one_default_wherever_it_occurs():
    seen, wrong = {}, []
    for role in generate_docs.roles():
        for name, value in generate_docs.defaults_of(role).items():
            if seen.setdefault(name, (role, value))[1] != value:
                wrong.append(f"{name}: {seen[name][0]} and {role}")
    assert not wrong


def test_only_what_stands_between_the_markers_is_replaced():
    page = f"before\n{generate_docs.BEGIN}\nold\n{generate_docs.END}\nafter\n"
    changed = generate_docs.with_section(page, "new")
    assert changed.startswith("before\n") and changed.endswith("\nafter\n")
    assert "old" not in changed and "\nnew\n" in changed
    assert generate_docs.with_section(changed, "new") == changed
    with pytest.raises(ValueError, match="no line"):
        generate_docs.with_section("a page without markers", "new")


def test_every_option_is_a_key_of_its_product():
    unknown = []
    for section in generate_docs.options():
        if section["product"] == "client":
            continue
        known = generate_docs.product_defaults(section["product"])
        unknown += [key for key in section["keys"] if key not in known and key != "server.N"]
    assert not unknown


def test_values_of_the_local_cluster_are_those_of_its_inventory():
    """The page computes them from fixed inputs; the inventory must not say otherwise."""
    local = ROOT / "inventories" / "local" / "group_vars"
    kafka = yaml.safe_load((local / "kafka.yml").read_text(encoding="utf-8"))
    zookeeper = yaml.safe_load((local / "zookeeper.yml").read_text(encoding="utf-8"))
    assert "kafka_config" not in kafka and "zookeeper_config" not in zookeeper
    (listener,) = kafka["kafka_listeners"]
    written = generate_docs.local_values("broker")["listeners"]
    assert written == f"{listener['name']}://{listener['bind']}:9092"


# Files that users copy commands from, and the names that must exist for these to work.
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted(ROOT.glob("roles/*/README.md")),
]


NAMES = [str(path.relative_to(ROOT)) for path in PAGES]


def anchors(page):
    """The anchors of a page's headings, as GitHub makes them, and those that it sets itself."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.*)$", text, flags=re.M)
    made = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return made | set(re.findall(r'<a id="([^"]+)"></a>', text))


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_anchors_of_a_page_exist(page):
    missing = []
    for path, anchor in re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", page.read_text(encoding="utf-8")):
        target = (page.parent / path).resolve() if path else page
        if "://" not in path and (not target.is_file() or anchor not in anchors(target)):
            missing.append(f"{path}#{anchor}")
    assert not missing


def test_files_that_the_architecture_names_exist():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    names = {name for name in re.findall(r"`([\w./]+\.(?:py|yml|j2|json))`", text) if "/" in name}
    names = {name for name in names if not re.search(r"\b(?:ROLE|NAME|plan_NAME)\b", name)}
    assert len(names) > 20
    roots = (ROOT, ROOT / "plugins" / "module_utils")
    assert not [name for name in names if not any((root / name).is_file() for root in roots)]


def test_the_row_of_service_managers_names_each_file_that_asks_which_one_it_is():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    row = text.partition("| **a service manager** |")[2].partition("\n")[0]
    asks = re.compile(r"""manager\b[^#\n]*?['"](?:systemd|supervisor)['"]|['"]systemd['"] not in""")
    places = [*ROOT.glob("plugins/**/*.py"), *ROOT.glob("roles/*/*/*.yml")]
    places += ROOT.glob("playbooks/**/*.yml")
    asking = {
        str(path.relative_to(ROOT)).replace("plugins/module_utils/", "")
        for path in places
        if asks.search(path.read_text(encoding="utf-8"))
    }
    asking -= {"instance/edge.py"}  # what an option needs
    assert len(asking) > 8 and not {name for name in asking if f"`{name}`" not in row}


def test_troubleshooting_names_every_family_of_problems():
    problems = yaml.safe_load((ROOT / "meta" / "problems.yml").read_text(encoding="utf-8"))
    text = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    families = {check.partition(".")[0] for check in problems}
    by_hand = text.partition("<!-- begin: generated")[0]
    missing = {name for name in families if f"`{name}.*`" not in by_hand}
    assert not missing, "add a row to the table at the top of docs/troubleshooting.md"


def test_every_refusal_is_found_from_the_page_of_troubleshooting():
    """By a link to its own row in the table of remedies."""
    problems = yaml.safe_load((ROOT / "meta" / "problems.yml").read_text(encoding="utf-8"))
    text = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    assert set(problems) <= anchors(ROOT / "docs" / "preflight.md")
    assert not {check for check in problems if f"](preflight.md#{check})" not in text}


@pytest.mark.parametrize("family", ["instance", "broker", "teardown"])
def test_where_one_sentence_is_too_little_the_way_out_is_told_by_hand(family):
    problems = yaml.safe_load((ROOT / "meta" / "problems.yml").read_text(encoding="utf-8"))
    text = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    by_hand = text.partition("<!-- begin: generated")[0]
    checks = {check for check in problems if check.startswith(f"{family}.")}
    assert checks and not {check for check in checks if check not in by_hand}


def test_the_preflight_page_names_what_cannot_be_accepted():
    text = (ROOT / "docs" / "preflight.md").read_text(encoding="utf-8")
    items = text.partition("These cannot be accepted")[2].split("\n\n")[1]
    assert set(re.findall(r"`([a-z_]+\.[a-z_]+)`", items)) == NEVER_ACCEPTED


def test_the_page_of_changes_names_what_changes_without_a_restart():
    text = (ROOT / "docs" / "changes.md").read_text(encoding="utf-8")
    table = text.partition("| settings that change without a restart |")[2].partition("\n\n")[0]
    assert set(re.findall(r"`([a-z.]+)`", table)) == POOLS | LIMITS


def test_the_index_names_every_page():
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert not {name for name in pages if f"]({name}" not in index}


@pytest.mark.parametrize("page", ["README.md", "docs/security.md"])
def test_what_there_is_a_module_for_is_not_said_to_be_missing(page):
    """The first part of each item, up to its colon, says what is not here."""
    text = (ROOT / page).read_text(encoding="utf-8")
    section = text.partition("## What is not here\n\n")[2].partition("\n## ")[0]
    items = [item.partition(":")[0] for item in re.split(r"^\* |;", section, flags=re.M)]
    missing = set(re.findall(r"[a-z]+", re.sub(r"`.*?`|\(.*?\)", "", " ".join(items)).lower()))
    names = " ".join(path.stem for path in (ROOT / "plugins" / "modules").glob("kafka_*.py"))
    managed = set(re.findall(r"[a-z]+s\b", names.replace("_", " ")))
    assert "kerberos" in missing and "acls" in managed and not missing & managed


def test_the_readme_says_of_kraft_what_its_table_says():
    """Each word of the sentence in which README.md sums the table of docs/kraft.md up."""
    page = (ROOT / "docs" / "kraft.md").read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| ")]
    can = {row[0]: row[-1].lstrip(" |[").startswith("yes") for row in rows}
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    told = readme.partition("**KRaft by default.**")[2].partition("* **")[0]
    works = told.partition(" as in ZooKeeper mode")[0]
    for word, beginning in [
        ("rolled", "| `rolling_restart.yml`"),
        ("upgraded", "| `rolling_upgrade.yml`"),
        ("scaled", "| `scale_out.yml`"),
        ("drilled", "| `drill.yml`"),
    ]:
        (row,) = [name for name in can if name.startswith(beginning)]
        assert (word in works) == can[row], word


def test_plays_and_tasks_that_a_page_shows_are_there():
    """A sample of a run is searched for in the output of the reader's own."""
    sources = [*ROOT.glob("playbooks/**/*.yml"), *ROOT.glob("roles/*/tasks/*.yml")]
    texts = [path.read_text(encoding="utf-8") for path in sources]
    names = {name for text in texts for name in re.findall(r"^ *- name: (.+)$", text, re.M)}
    pages = [page.read_text(encoding="utf-8") for page in PAGES]
    shown = {
        name for page in pages for name in re.findall(r"(?:PLAY|TASK) \[(?:\S+ : )?(.+?)\]", page)
    }
    assert len(shown) > 5 and not shown - names


def test_the_sample_of_drills_has_the_words_of_today():
    """But for what was observed, and DONE of the ZooKeepers, whose last one was stopped then, as the page says."""
    text = (ROOT / "docs" / "drills.md").read_text(encoding="utf-8")
    begin = text.index("    CASE  ")
    lines = [line[4:] for line in text[begin : text.index("\n\n", begin)].splitlines()]
    starts = [lines[0].index(name) for name in COLUMNS]
    rows = {
        line.split()[0]: dict(zip(COLUMNS, (line[a:b].strip() for a, b in zip(starts, ends))))
        for line in lines[1:]
        for ends in [[*starts[1:], None]]
    }
    assert [each.name for each in DRILLS] == list(rows)
    for drill in DRILLS:
        row = rows[drill.name]
        assert row["EXPECTED"] == drill.expected and row["VERDICT"] == AS_EXPECTED, drill.name
    assert rows["controllers_quorum"]["DONE"] == "2 of 3 controllers gone, the last killed"


def test_contributing_names_every_part_and_every_scenario():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    source = (ROOT / "noxfile.py").read_text(encoding="utf-8")
    parts = set(re.findall(r"^ *@nox\.session.*\n *def (\w+)", source, re.M))
    parts |= set(re.findall(r'^pytest_part\(\s*"(\w+)"', source, re.M))
    scenarios = {path.parent.name for path in ROOT.glob("molecule/*/molecule.yml")}
    assert len(parts) > 12 and len(scenarios) > 4
    assert not {name for name in parts | scenarios if f"\n| {name} | " not in text}


def test_tools_that_replace_old_ones_are_there():
    """Of docs/commands.md; what was gone before 3.8 stands in its first column only."""
    text = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    rows = [re.split(r"(?<!\\)\|", line) for line in text.splitlines() if line.startswith("| ")]
    named = {name for row in rows for name in re.findall(r"\b(\w[\w-]+\.sh)\b", row[2])}
    tools = {each.name for each in (*KAFKA_TOOLS, *ZOOKEEPER_TOOLS)}
    assert len(named) > 10 and not named - tools


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_playbooks_and_links_of_a_page_exist(page):
    text = page.read_text(encoding="utf-8")
    missing = [
        name for name in re.findall(r"\bplaybooks/[\w/]+\.yml", text) if not (ROOT / name).is_file()
    ]
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        if "://" not in target and not (page.parent / target).exists():
            missing.append(target)
    assert not missing
