# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One run at a time: first the two phases alone, on hosts without a cluster; then site.yml on a cluster."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.local.support import CHECKOUT as ROOT
from tests.local.support import what_went_wrong
from tests.local.watching import changed
from tests.support.outside import wait_until
from tests.support.traffic import Traffic
from tests.support.watching import Watch, cluster_is_whole

PLAYBOOK = f"""
- ansible.builtin.import_playbook: {ROOT}/playbooks/phases/members.yml
- ansible.builtin.import_playbook: {ROOT}/playbooks/phases/lock.yml
- hosts: kafkaops_members
  gather_facts: false
  tasks:
    - name: Note that it works
      ansible.builtin.copy: {{dest: "{{{{ at_work }}}}", content: "{{{{ kafkaops_lock | to_json }}}}", mode: "0600"}}
      run_once: true
      when: at_work is defined
    - name: Work as long as it is told to
      ansible.builtin.wait_for: {{path: "{{{{ at_work }}}}", state: absent, timeout: 120, sleep: 0}}
      run_once: true
      when: at_work is defined
- ansible.builtin.import_playbook: {ROOT}/playbooks/phases/unlock.yml
"""


NEVER = ("-e", "flow_validation=never")


class World:
    """An inventory of brokers on this machine, each with a directory of locks of its own by default."""

    def __init__(self, tmp_path):
        self.path = tmp_path
        (tmp_path / "work.yml").write_text(PLAYBOOK)
        self.brokers = {
            f"kafka-{number}": {"kafkaops_lock_dir": str(tmp_path / f"locks-{number}")}
            for number in (1, 2, 3)
        }

    def command(self, *arguments):
        variables = {
            "ansible_connection": "local",
            "ansible_python_interpreter": sys.executable,
            "kafka_config_dir": str(self.path / "{{ inventory_hostname }}"),
        }
        hosts = {"all": {"vars": variables, "children": {"kafka": {"hosts": self.brokers}}}}
        (self.path / "hosts.yml").write_text(yaml.safe_dump(hosts))
        binary = Path(sys.executable).with_name("ansible-playbook")
        words = [binary, self.path / "work.yml", "-i", self.path / "hosts.yml", *arguments]
        return [str(word) for word in words]

    @property
    def environment(self):
        return {
            **os.environ,
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_SSH_RETRIES": "0",
        }

    def run(self, *arguments):
        """Run the playbook; returns (exit code, output with blanks and line breaks as one blank)."""
        done = subprocess.run(
            self.command(*arguments),
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=180,
            check=False,
        )
        return done.returncode, " ".join(done.stdout.split())

    @contextlib.contextmanager
    def at_work(self, *arguments):
        """Yield a run that holds the lock; let it go on and end well, if it was not killed."""
        mark = self.path / "at_work"
        process = subprocess.Popen(
            self.command("-e", f"at_work={mark}", *arguments),
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            wait_until(
                lambda: process.poll() is not None or (mark.exists() and mark.stat().st_size),
                120,
                "the run works",
            )
            assert process.poll() is None
            yield process
            if process.poll() is None:
                mark.unlink()
                assert process.wait(120) == 0
        finally:
            mark.unlink(missing_ok=True)  # for the worker of a killed run
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def holders(self):
        """Return number of the broker -> pid of the run that holds the lock there."""
        found = {}
        for number in (1, 2, 3):
            for path in (self.path / f"locks-{number}").glob("*.json"):
                found[number] = json.loads(path.read_text())["pid"]
        return found


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


def test_while_one_works_on_one_broker_another_is_refused_on_another_one(world):
    with world.at_work("--limit", "kafka-3") as first:
        assert world.holders() == {1: first.pid, 2: first.pid, 3: first.pid}
        code, text = world.run("--limit", "kafka-2")
        assert code == 2
        refusal = re.search(
            r"\[run\.locked\] kafka-1: kafka_cluster_name=kafka: (.*?)\.(?: |$)", text
        )
        assert refusal and f"work.yml --limit kafka-3 (process {first.pid} of" in refusal[1], text
        owner = re.search(r"-e kafkaops_break_lock=(\S+)", text)[1]
        assert owner.split(":")[1] == str(first.pid)
        # what it was refused it has not harmed, and neither has a guess
        code, text = world.run("-e", f"kafkaops_break_lock={owner}0")
        assert code == 2 and "names somebody else" in text
        assert world.holders() == {1: first.pid, 2: first.pid, 3: first.pid}
    assert world.holders() == {}
    assert world.run("--limit", "kafka-2")[0] == 0


def test_the_same_hosts_under_another_name_of_their_cluster_are_refused(world):
    """Two inventories of one cluster: on real hosts its name is a label that nothing else shows."""
    with world.at_work() as first:
        code, text = world.run("-e", "kafka_cluster_name=prod", "--limit", "kafka-2")
        assert code == 2, text
        assert "kafka_cluster_name=prod: work.yml (process" in text, text
        assert "holds the lock of this cluster under another name, kafka and still runs" in text
        assert world.holders() == {1: first.pid, 2: first.pid, 3: first.pid}
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
        code, text = world.run("-e", "kafka_cluster_name=prod")
    assert code == 0 and f"was left by work.yml (process {first.pid} of" in text, text
    assert world.holders() == {}


def test_the_named_holder_is_broken_and_gives_back_nothing_of_the_other(world):
    with world.at_work() as first:
        _code, text = world.run()
        owner = re.search(r"-e kafkaops_break_lock=(\S+)", text)[1]
        code, text = world.run("-e", f"kafkaops_break_lock={owner}")
        assert code == 0 and f"is taken from work.yml (process {first.pid} of" in text, text
        for number in (1, 2, 3):  # another one has it by now
            (world.path / f"locks-{number}").mkdir()
            other = {"host": "laptop", "place": "x", "pid": 1, "start_ticks": 1, "user": "bob"}
            other.update(playbook="stop.yml", cluster="kafka", taken_at=0)
            (world.path / f"locks-{number}" / "kafka.json").write_text(json.dumps(other))
    assert world.holders() == {1: 1, 2: 1, 3: 1}
    code, text = world.run()
    assert code == 2 and "stop.yml (process 1 of bob on laptop" in text
    assert "cannot be seen from here" in text and "-e kafkaops_break_lock=laptop:1:1 " in text


def test_what_a_killed_run_has_left_is_taken_over(world):
    with world.at_work() as first:
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
        assert set(world.holders().values()) == {first.pid}
        code, text = world.run("--limit", "kafka-2")
    assert code == 0 and f"was left by work.yml (process {first.pid} of" in text, text
    assert world.holders() == {}


def test_who_moves_between_disks_and_who_restarts_work_at_once_and_say_so(world):
    disks = ("-e", "kafkaops_lock_disks=true")
    with world.at_work(*disks) as process:
        code, said = world.run()
        assert code == 0 and f"Meanwhile work.yml (process {process.pid} of " in said, said
        code, said = world.run(*disks)
        assert code and "[run.locked]" in said and "moves replicas between the disks" in said, said
    assert world.holders() == {}


def test_a_run_that_came_and_went_since_the_preflight_has_looked_is_seen(world):
    locks = {name: world.path / name / ".lock" for name in world.brokers}

    def outdated(marks):
        for name, path in locks.items():
            facts = {"marks": marks(path)}
            world.brokers[name]["kafkaops_preflight_collected"] = {"facts": facts}
        with world.at_work():
            return json.loads((world.path / "at_work").read_text())["outdated"]

    for path in locks.values():
        path.parent.mkdir()
        path.touch()
    assert not outdated(lambda path: [])
    assert outdated(lambda path: [])
    assert not outdated(lambda path: [path.read_text()])


def test_of_two_that_start_at_once_one_works(world):
    for _round in range(3):
        with contextlib.ExitStack() as stack:
            runs = [
                stack.enter_context(
                    subprocess.Popen(
                        world.command(
                            "--limit", f"kafka-{number}", "-e", f"at_work={world.path}/w"
                        ),
                        env=world.environment,
                        stdin=subprocess.DEVNULL,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.STDOUT,
                        text=True,
                    )
                )
                for number in (2, 3)
            ]
            # the winner works until the other one has ended
            loser = wait_until(
                lambda runs=runs: next((run for run in runs if run.poll() is not None), None),
                120,
                "one has ended",
            )
            assert loser.returncode == 2
            assert "[run.locked]" in loser.stdout.read()
            wait_until((world.path / "w").exists, 120, "the other one works")
            (winner,) = [run for run in runs if run is not loser]
            assert set(world.holders().values()) == {winner.pid} and len(world.holders()) == 3
            (world.path / "w").unlink()
            assert winner.wait(120) == 0
            winner.stdout.close()


def test_a_host_that_does_not_answer_is_named(world):
    # nobody listens at the discard port
    world.brokers["kafka-1"].update(
        ansible_connection="ssh", ansible_host="127.0.0.1", ansible_port=9
    )
    with world.at_work("--limit", "kafka-2"):
        assert sorted(world.holders()) == [2, 3]
        told = json.loads((world.path / "at_work").read_text())
        assert sorted(told["fences"]) == ["kafka-2", "kafka-3"]
        code, text = world.run("--limit", "kafka-3")
        assert code == 2 and "[run.locked]" in text
    code, text = world.run("--limit", "kafka-3")
    assert code == 0 and "warning: [run.lock_incomplete] kafka-1: " in text, text


def test_a_lock_that_can_be_kept_nowhere_is_refused(world):
    (world.path / "file").write_text("")
    for settings in world.brokers.values():
        settings["kafkaops_lock_dir"] = str(world.path / "file" / "locks")
    code, text = world.run()
    assert code == 2 and "[run.lock_failed]" in text and "Not a directory" in text, text


def test_check_mode_takes_and_minds_nothing(world):
    with world.at_work() as first:
        code, text = world.run("--check")
        assert code == 0, text
        assert set(world.holders().values()) == {first.pid}
    code, _text = world.run("--check")
    assert code == 0 and not list(world.path.glob("locks-*"))


def test_names_and_clusters_of_one_machine(world):
    """Two brokers that share a directory are one place; a third is of another cluster."""
    for settings in world.brokers.values():
        settings["kafkaops_lock_dir"] = str(world.path / "locks-1")
    world.brokers["kafka-3"]["kafka_cluster_name"] = "other"
    with world.at_work("--limit", "kafka-1"):
        names = sorted(path.name for path in (world.path / "locks-1").glob("*.json"))
        assert names == ["kafka.json"]
        assert world.run("--limit", "kafka-3")[0] == 0
        assert world.run("--limit", "kafka-2")[0] == 2
        # of two clusters one is refused: what was taken of the other is given back
        assert world.run("--limit", "kafka-2,kafka-3")[0] == 2
        assert sorted(path.name for path in (world.path / "locks-1").glob("*.json")) == names


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes root by su without a password")
def test_a_module_does_it_where_this_process_may_not(world):
    for settings in world.brokers.values():
        settings.update(ansible_become=True, ansible_become_method="su")
    with world.at_work("--limit", "kafka-2") as first:
        assert world.holders() == {1: first.pid, 2: first.pid, 3: first.pid}
        code, text = world.run()
        assert code == 2 and f"(process {first.pid} of" in text, text
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()
        code, text = world.run()
        assert code == 0 and "taken over" in text, text
    assert world.holders() == {}


# ---------------------------------------------------------------- with a cluster


def setting(cluster, value):
    """Make a restart of every broker pending: Kafka reads this key only at its start."""
    cluster.set_brokers({"queued.max.requests": value})


def holder(cluster):
    """Return what the lock says, or None."""
    path = cluster.home / "locks" / f"{cluster.name}.json"
    with contextlib.suppress(FileNotFoundError, ValueError):
        return json.loads(path.read_text())
    return None


def refused(text, pid):
    """Tell whether a run was refused for the one of that process."""
    return bool(re.search(rf"\[run\.locked\].*?\(process {pid} of", " ".join(text.split())))


@pytest.mark.soak
def test_two_runs_that_restart_different_brokers_never_both_do(cluster):
    """It stopped every partition for half a minute: both brokers were down at once, both exit codes 0."""
    wait_until(lambda: cluster_is_whole(cluster), 120, "whole before")
    setting(cluster, 501)
    before = cluster.processes()
    with Traffic(cluster, "orders") as traffic, Watch(cluster) as watch:
        wait_until(lambda: traffic.acknowledged, 60, "the first acknowledgement")
        with contextlib.ExitStack() as stack:
            runs = {
                name: stack.enter_context(cluster.playing("site.yml", *NEVER, "--limit", name))
                for name in ("kafka-1", "kafka-2")
            }
            for process, _log in runs.values():
                process.wait(300)
            texts = {name: log.read_text() for name, (_process, log) in runs.items()}
            codes = {name: process.returncode for name, (process, _log) in runs.items()}
            pids = {name: process.pid for name, (process, _log) in runs.items()}
    assert sorted(codes.values()) == [0, 2], "\n".join(
        what_went_wrong(text) for text in texts.values()
    )
    winner, loser = sorted(codes, key=codes.get)
    assert refused(texts[loser], pids[winner]), texts[loser]
    assert watch.check() == [winner]
    assert changed(before, cluster.processes()) == {winner}
    assert not traffic.failed and traffic.lost() == []
    assert holder(cluster) is None

    # While it works, nothing else starts or stops; who only looks may look.
    before = cluster.processes()
    with cluster.playing("site.yml", *NEVER, "--limit", loser) as (process, log):
        wait_until(lambda: holder(cluster) or process.poll() is not None, 120, "it has the lock")
        os.kill(process.pid, signal.SIGSTOP)  # so that it does not end meanwhile
        for playbook in ("stop.yml", "start.yml", "teardown.yml", "site.yml"):
            run = cluster.play(playbook, *NEVER, "-e", f"confirm={cluster.name}", code=2)
            assert refused(run.text, process.pid), run.text
        assert f"(process {process.pid} of" in cluster.play("status.yml").text
        cluster.play("topics.yml")
        os.kill(process.pid, signal.SIGCONT)
        assert process.wait(300) == 0, log.read_text()
    assert changed(before, cluster.processes()) == {loser}
    assert holder(cluster) is None


@pytest.mark.soak
def test_a_run_killed_in_a_turn_is_taken_over_when_its_module_is_done(cluster):
    wait_until(lambda: cluster_is_whole(cluster), 120, "whole before")
    setting(cluster, 502)
    before = cluster.processes()
    with Watch(cluster) as watch:
        with cluster.playing("site.yml", *NEVER) as (process, _log):
            wait_until(lambda: changed(before, cluster.processes()), 300, "the first turn")
            os.killpg(process.pid, signal.SIGKILL)  # the worker and its module go on
            process.wait(30)
        assert holder(cluster)["pid"] == process.pid
        # like a module that outlives the run by more than the next preflight takes
        with open(cluster.instance("kafka-1") / "conf" / ".lock", "rb") as instance:
            fcntl.flock(instance, fcntl.LOCK_EX)
            with cluster.playing("site.yml", *NEVER) as (other, log):
                wait_until(
                    lambda: holder(cluster)["pid"] == other.pid, 120, "the lock is taken over"
                )
                fcntl.flock(instance, fcntl.LOCK_UN)
                assert other.wait(600) == 0
                text = log.read_text()
    assert f"was left by site.yml (process {process.pid} of" in " ".join(text.split()), text
    # what the preflight saw was older than what the module had done
    assert "Look again, since another run was at work meanwhile" in text, text
    assert text.count("PLAY [Check the whole inventory]") == 1
    assert text.count("preflight : Judge the inventory") == 2
    assert sorted(set(watch.check())) == sorted(cluster.brokers)
    assert changed(before, cluster.processes()) == set(cluster.brokers)
    assert cluster.deploy().changed() == 0


@pytest.mark.soak
def test_a_run_whose_lock_was_broken_stops_nothing_any_more(cluster):
    wait_until(lambda: cluster_is_whole(cluster), 120, "whole before")
    setting(cluster, 503)
    before = cluster.processes()
    with Watch(cluster) as watch:
        with cluster.playing("site.yml", *NEVER, "--limit", "kafka-1") as (process, log):
            wait_until(
                lambda: holder(cluster) or process.poll() is not None, 120, "it has the lock"
            )
            os.kill(process.pid, signal.SIGSTOP)
            owner = holder(cluster)["owner"]
            cluster.deploy("--limit", "kafka-2", "-e", f"kafkaops_break_lock={owner}")
            os.kill(process.pid, signal.SIGCONT)
            assert process.wait(300) == 2
            text = log.read_text()
    assert "[run.lock_lost]" in text and "nobody has it" in " ".join(text.split()), text
    assert changed(before, cluster.processes()) == {"kafka-2"}
    assert watch.check() == ["kafka-2"]
    cluster.deploy()
