# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Desired states that nobody has chosen: drawn, applied one after another, compared with Kafka's own tools.

Before each step somebody else changes something, too. What must be there afterwards is computed here from
the declaration alone, so nothing below takes part in the planning that it judges.
"""

from __future__ import annotations

import os
import random
import re
from collections import defaultdict

import pytest

from .test_acls import told as rights_told

pytestmark = pytest.mark.soak

STEPS = 8
NAMES = ("plain", "with.dot", "with-dash", "UPPER", "z9")
# What a person may write, and what Kafka then has.
TOPIC_VALUES = {
    "retention.ms": [("7d", "604800000"), (-1, "-1"), (3600000, "3600000"), ("90m", "5400000")],
    "retention.bytes": [("1GiB", "1073741824"), ("-1", "-1"), (52428800, "52428800")],
    "cleanup.policy": [("compact", "compact"), (["compact", "delete"], "compact,delete")],
    "max.message.bytes": [("2MiB", "2097152"), (1000000, "1000000")],
    "unclean.leader.election.enable": [(True, "true"), ("false", "false")],
    "min.cleanable.dirty.ratio": [(0.2, "0.2"), ("0.75", "0.75")],
    "compression.type": [("zstd", "zstd"), ("producer", "producer")],
}
BROKER_VALUES = {
    "log.retention.ms": [("14d", "1209600000"), ("1d", "86400000"), (-1, "-1")],
    "message.max.bytes": [("2MiB", "2097152"), (900000, "900000")],
    "log.cleaner.backoff.ms": [("20s", "20000"), (14000, "14000")],
    "log.segment.bytes": [("512MiB", "536870912"), (104857600, "104857600")],
    "num.replica.fetchers": [(2, "2"), ("1", "1")],
}
LIMIT_VALUES = {
    "producer_byte_rate": [("20MiB", 20971520), (1024, 1024)],
    "consumer_byte_rate": [("512KiB", 524288), ("4096", 4096)],
    "request_percentage": [(50, 50), (12.5, 12.5)],
    "controller_mutation_rate": [(3, 3)],
}
OPERATIONS = ("read", "write", "describe", "delete", "alter", "create")


def drawn(chance, table, nothing=True):
    """Some keys with a value each, as (declared, meant); a meant None is to be taken away."""
    keys = chance.sample(sorted(table), chance.randint(0, min(4, len(table))))
    chosen = {key: chance.choice(table[key]) for key in keys}
    if nothing and chosen and chance.random() < 0.4:
        chosen[chance.choice(sorted(chosen))] = (None, None)
    declared = {key: value for key, (value, _meant) in chosen.items()}
    return declared, {key: meant for key, (_value, meant) in chosen.items()}


def merged(before, named, mode):
    """Settings after a declaration."""
    kept = dict(before) if mode == "merge" else {}
    return {key: value for key, value in {**kept, **named}.items() if value is not None}


class Topics:
    """name -> (partitions, settings)"""

    module = "kafka_topics"
    consents = (
        "partition_growth",
        "retention_cut",
        "delete",
        "cleanup_change",
        "unclean_election",
        "min_insync_cut",
    )

    def __init__(self, cluster, word):
        self.cluster, self.names = cluster, [f"{word}.{each}" for each in NAMES]

    def told(self):
        found = {}
        lines = self.cluster.tool("org.apache.kafka.tools.TopicCommand", "--describe")
        for line in lines.splitlines():
            words = re.search(
                r"^Topic: (\S+)\s.*PartitionCount: (\d+)\s.*Configs: ?(.*)$", line.strip()
            )
            if words and words[1] in self.names:
                # a value may have commas of its own
                pairs = re.findall(r"([a-z][a-z.]*)=(.*?)(?=,[a-z][a-z.]*=|$)", words[3].strip())
                # what the brokers' files set is listed, too
                settings = {key: value for key, value in pairs if key in TOPIC_VALUES}
                found[words[1]] = (int(words[2]), settings)
        return found

    def drawn(self, chance, now):
        mode, then, items, refused = chance.choice(("merge", "replace")), dict(now), [], False
        for name in chance.sample(self.names, chance.randint(1, 4)):
            if chance.random() < 0.2:
                items.append({"name": name, "state": "absent"})
                then.pop(name, None)
                continue
            partitions, settings = now.get(name, (0, {}))
            declared, named = drawn(chance, TOPIC_VALUES)
            wanted = chance.randint(1, 6)
            refused = refused or wanted < partitions
            items.append({"name": name, "partitions": wanted, "config": declared})
            then[name] = (wanted, merged(settings, named, mode))
        return {"topics": items, "config_mode": mode, "allow": list(self.consents)}, then, refused

    def by_another(self, chance, now):
        name = chance.choice(sorted(now))
        key = chance.choice(sorted(TOPIC_VALUES))
        value = chance.choice(TOPIC_VALUES[key])[1]
        self.cluster.tool(
            *("kafka.admin.ConfigCommand", "--alter", "--entity-type", "topics", "--entity-name"),
            *(name, "--add-config", f"{key}=[{value}]"),
        )


class Settings:
    """ "" for the default of all brokers and "1" for one of them -> settings"""

    module = "kafka_configs"
    consents = ("retention_cut", "cleanup_change", "unclean_election", "min_insync_cut")
    scopes = {"": ("--entity-default",), "1": ("--entity-name", "1")}

    def __init__(self, cluster, _word):
        self.cluster = cluster

    def told(self):
        found = {}
        for scope, words in self.scopes.items():
            text = self.cluster.tool(
                *("kafka.admin.ConfigCommand", "--describe", "--entity-type", "brokers", *words)
            )
            lines = re.findall(r"^\s+([a-z.]+)=(\S+) sensitive=.*synonyms=\{(.*)\}", text, re.M)
            kind = "DYNAMIC_BROKER_CONFIG" if scope else "DYNAMIC_DEFAULT_BROKER_CONFIG"
            found[scope] = {
                key: value
                for key, value, whence in lines
                if key in BROKER_VALUES and whence.startswith(f"{kind}:")
            }
        return found

    def drawn(self, chance, now):
        mode, then, items = chance.choice(("merge", "replace")), dict(now), []
        for scope in chance.sample(sorted(self.scopes), chance.randint(1, 2)):
            declared, named = drawn(chance, BROKER_VALUES)
            if not declared:
                continue
            where = {"scope": "broker", "brokers": [1]} if scope else {"scope": "cluster"}
            items.append({**where, "settings": declared})
            then[scope] = merged(now[scope], named, mode)
        return {"configs": items, "config_mode": mode, "allow": list(self.consents)}, then, False

    def clear(self):
        """Other tests share the cluster."""
        gone = {"state": "absent", "settings": dict.fromkeys(BROKER_VALUES)}
        items = [{**gone, "scope": "cluster"}, {**gone, "scope": "broker", "brokers": [1]}]
        done = self.cluster.run(self.module, configs=items, allow=list(self.consents))
        assert not done.failed, done.msg

    def by_another(self, chance, _now):
        scope, key = chance.choice(sorted(self.scopes)), chance.choice(sorted(BROKER_VALUES))
        self.cluster.tool(
            *("kafka.admin.ConfigCommand", "--alter", "--entity-type", "brokers"),
            *(*self.scopes[scope], "--add-config", f"{key}={chance.choice(BROKER_VALUES[key])[1]}"),
        )


class Limits:
    """(user, client id), None where it does not matter -> limits"""

    module = "kafka_quotas"

    def __init__(self, cluster, word):
        self.cluster, self.word = cluster, word
        users, clients = (None, f"{word} a", f"{word}:b"), (None, f"{word}-x", f"{word}.y")
        self.entities = [(user, client) for user in users for client in clients if user or client]

    def told(self):
        found = defaultdict(dict)
        for words in (("users", "clients"), ("users",), ("clients",)):
            kinds = [each for word in words for each in ("--entity-type", word)]
            text = self.cluster.tool("kafka.admin.ConfigCommand", "--describe", *kinds)
            for line in text.splitlines():
                head = re.match(r"Quota configs for (.*) are (.*)$", line)
                if not head or self.word not in head[1]:
                    continue
                user = re.search(r"user-principal '([^']*)'", head[1])
                client = re.search(r"client-id '([^']*)'", head[1])
                limits = dict(re.findall(r"(\w+)=([\d.E]+)", head[2]))
                found[(user and user[1], client and client[1])] = {
                    key: float(value) for key, value in limits.items()
                }
        return {entity: limits for entity, limits in found.items() if limits}

    def drawn(self, chance, now):
        mode, then, items = chance.choice(("merge", "replace")), dict(now), []
        for user, client in chance.sample(self.entities, chance.randint(1, 4)):
            item = {"user": user, "client_id": client}
            item = {key: value for key, value in item.items() if value}
            if chance.random() < 0.2:
                items.append({**item, "state": "absent"})
                then.pop((user, client), None)
                continue
            declared, named = drawn(chance, LIMIT_VALUES)
            if not declared:
                continue
            items.append({**item, "limits": declared})
            then[(user, client)] = merged(now.get((user, client), {}), named, mode)
        return (
            {"quotas": items, "limits_mode": mode},
            {entity: limits for entity, limits in then.items() if limits},
            False,
        )

    def by_another(self, chance, _now):
        names = {"users": f"{self.word}:b", "clients": f"{self.word}-x"}
        kinds = chance.choice((("users",), ("clients",), ("users", "clients")))
        words = [
            each for kind in kinds for each in ("--entity-type", kind, "--entity-name", names[kind])
        ]
        key = chance.choice(sorted(LIMIT_VALUES))
        value = chance.choice(LIMIT_VALUES[key])[1]
        self.cluster.tool(
            "kafka.admin.ConfigCommand", "--alter", *words, "--add-config", f"{key}={value}"
        )


class Rights:
    """A set of (type, name, pattern, principal, permission, operation, host), as a dict without values"""

    module = "kafka_acls"

    def __init__(self, cluster, word):
        self.cluster, self.word = cluster, word
        self.principals = [f"User:{word} {each}" for each in ("ann", "bob", "O=x,C=y")]

    def told(self):
        return dict.fromkeys(
            each for each in rights_told(self.cluster) if each[3] in self.principals
        )

    def drawn(self, chance, now):
        then, items, gone = dict(now), [], set()
        for _number in range(chance.randint(1, 4)):
            kind = chance.choice(("topic", "group"))
            usual = OPERATIONS if kind == "topic" else ("read", "describe", "delete")
            permission, pattern = chance.choice(("allow", "deny")), chance.choice(
                ("literal", "prefixed")
            )
            item = {
                kind: f"{self.word}.{chance.choice(NAMES)}",
                "principal": chance.choice(self.principals),
                "operations": chance.sample(usual, chance.randint(1, 3)),
                "pattern": pattern,
                "permission": permission,
                "host": chance.choice(("*", "192.0.2.7")),
            }
            meant = {
                (kind, item[kind], pattern, item["principal"], permission, each, item["host"])
                for each in item["operations"]
            }
            if meant & (gone | {each for one in items for each in one[1]}):
                continue  # said twice, or against what was said: refused
            if chance.random() < 0.3:
                item["state"], gone = "absent", gone | meant
                then = {each: None for each in then if each not in meant}
            else:
                then.update(dict.fromkeys(meant))
            items.append((item, meant))
        options = {"acls": [item for item, _meant in items], "allow": ["first_acl", "last_acl"]}
        if chance.random() < 0.3:
            whose = chance.choice(self.principals)
            declared = {each for item, meant in items if "state" not in item for each in meant}
            then = {each: None for each in then if each[3] != whose or each in declared}
            options["purge"] = {"principals": [re.escape(whose)], "maximum": 1000}
        return options, then, False

    def by_another(self, chance, _now):
        self.cluster.acl_tool(
            *("--add", "--force", "--allow-principal", chance.choice(self.principals)),
            *("--operation", "Read", "--topic", f"{self.word}.{chance.choice(NAMES)}"),
        )


@pytest.mark.parametrize("kind", [Topics, Settings, Limits, Rights], ids=lambda kind: kind.module)
def test_any_state_is_reached_and_nothing_else_changes(secured, name, kind):
    seed = int(os.environ.get("KAFKAOPS_TEST_SEED", random.randrange(10**6)))
    print(f"KAFKAOPS_TEST_SEED={seed}")
    chance, state = random.Random(seed), kind(secured, name)
    try:
        walk(secured, chance, state, f"seed {seed}")
    finally:
        if kind is Settings:
            state.clear()


def walk(secured, chance, state, seed):
    """Declare one state after another; each is reached, and what is not named stays."""
    now = state.told()
    for step in range(STEPS):
        if now and chance.random() < 0.5:
            state.by_another(chance, now)
            now = state.told()
        options, then, refused = state.drawn(chance, now)
        about = f"{seed}, step {step}: {options} on {now}"
        shown = secured.run(state.module, check=True, **options)
        assert shown.failed == refused, f"{about}: {shown.msg}"
        assert state.told() == now, f"{about}: a check changed something"
        done = secured.run(state.module, **options)
        assert done.failed == refused, f"{about}: {done.msg}"
        if not refused:
            assert (done.changed, done.plan, done.diff) == (
                shown.changed,
                shown.plan,
                shown.diff,
            ), about
            assert done.changed == (then != now), about
            again = secured.run(state.module, **options)
            assert not again.failed and not again.changed, f"{about}: {again.plan}"
            now = then
        assert state.told() == now, f"{about}: {done.plan}"
