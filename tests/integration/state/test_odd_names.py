# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What people may declare and hardly anybody does: as Kafka's own tools tell it afterwards, exported, applied again."""

from __future__ import annotations

import pytest
import yaml
from confluent_kafka.admin import AdminClient

from tests.support.adopted import Adopted, hosts_of
from tests.support.readers import commit, create, told_by_kafka, write

CONFIG = "kafka.admin.ConfigCommand"
TOPIC = "org.apache.kafka.tools.TopicCommand"
LONG, LONGEST = "l" * 200, "n" * 249
CERTIFICATE = 'User:CN=Ünsal "Q", O=a\\, b, C=DE'
TOPICS = [
    {"name": LONG, "partitions": 2, "retention": "4w"},
    {"name": LONGEST, "partitions": 1, "retention_size": "1GiB"},
    {
        "name": "Odd.Name-1_2",
        "partitions": 1,
        "cleanup": ["compact", "delete"],
        "config": {
            "min.cleanable.dirty.ratio": 0.25,
            "message.timestamp.type": "LogAppendTime",
            "compression.type": "zstd",
            "delete.retention.ms": "12h",
            "max.message.bytes": "2MiB",
        },
    },
    {"name": "-", "partitions": 1},
    {"name": "...", "partitions": 1, "retention": "forever"},
]
ACLS = [
    {"principal": "User:*", "topic": "*", "operations": ["describe"], "host": "192.0.2.1"},
    {"principal": CERTIFICATE, "topic": LONG, "operations": ["read", "write"]},
    {
        "principal": "User:a:b",
        "topic": "Odd.",
        "pattern": "prefixed",
        "operations": ["all"],
        "host": "2001:db8::1",
    },
    {"principal": "User:a:b", "group": "team *, ü", "operations": ["read"], "permission": "deny"},
    {"principal": "User:a:b", "transactional_id": "*", "operations": ["write"]},
    {"principal": "User:a:b", "cluster": True, "operations": ["idempotent_write"]},
]
USERS = [
    {"name": name, "password": password, "mechanisms": ["SCRAM-SHA-256", "SCRAM-SHA-512"]}
    for name, password in (
        ("comma,equals=percent%", 'quote"comma,equals=back\\slash'),
        ("first last@example.org/realm", "pässwörd {{ 6 * 7 }} # not a comment"),
        ("CN=x, O=y", "blanks in it and behind  "),
        ("1e3", "0123"),
    )
]
QUOTAS = [
    {"user": "<default>", "client_id": "<default>", "limits": {"request_percentage": 12.5}},
    {"user": "<default>", "client_id": "a/b %2F", "limits": {"producer_byte_rate": "1MiB"}},
    {"user": "CN=x, O=y", "client_id": "<default>", "limits": {"consumer_byte_rate": 1024}},
    {"user": "1e3", "limits": {"controller_mutation_rate": 0.5}},
    {"client_id": 'quote " and ü', "limits": {"producer_byte_rate": 12345678901}},
    {"ip": "192.0.2.77", "limits": {"connection_creation_rate": 10}},
    {"ip": "<default>", "limits": {"connection_creation_rate": 1000}},
]
DYNAMIC = [
    {
        "scope": "cluster",
        "settings": {"max.connections.per.ip.overrides": "192.0.2.3:100,192.0.2.4:7"},
    },
    {"scope": "broker", "brokers": [1], "settings": {"log.cleaner.backoff.ms": "14s"}},
]
STATE = {
    "kafka_topics": TOPICS,
    "kafka_acls": ACLS,
    "kafka_users": USERS,
    "kafka_quotas": QUOTAS,
    "kafka_dynamic_configs": DYNAMIC,
}


def taken_away(cluster):
    """Other tests share the cluster."""
    gone = [{**each, "state": "absent"} for each in DYNAMIC]
    assert not cluster.run("kafka_configs", configs=gone).failed
    everything = {"patterns": [".*"], "maximum": 100}
    assert not cluster.run("kafka_quotas", quotas=[], purge=everything).failed
    users = [{"name": each["name"], "state": "absent"} for each in USERS]
    assert not cluster.run("kafka_users", users=users).failed
    topics = [{"name": each["name"], "state": "absent"} for each in TOPICS]
    assert not cluster.run("kafka_topics", topics=topics, allow=["delete"]).failed


# A minute and a half each, nearly all of it playbooks; tests/local/test_state.py has the ways of names that people use.
@pytest.mark.soak
def test_a_declared_state_of_odd_names(secured, tmp_path):
    cluster = secured
    inventory = Adopted(tmp_path / "first" / "inventory", hosts_of(cluster))
    inventory.state.write_text(yaml.safe_dump(unsafe(STATE), allow_unicode=True))
    checked = inventory.play("state.yml", "--check", "--diff")
    done = inventory.play("state.yml")
    kinds = ("topics", "settings", "rights", "quotas", "users")
    assert set(done.lines) == set(kinds), done.text
    for kind, words in checked.lines.items():
        count = words.partition(" would change")[0]
        assert done.lines[kind].startswith(f"{count} changed"), (words, done.lines[kind])
    assert not any(
        each["password"] in checked.text + done.text for each in USERS if each["password"] != "0123"
    )

    told = cluster.tool(TOPIC, "--describe")
    for name, words in (
        (LONG, "retention.ms=2419200000"),
        (LONGEST, "retention.bytes=1073741824"),
        ("Odd.Name-1_2", "min.cleanable.dirty.ratio=0.25"),
        ("Odd.Name-1_2", "max.message.bytes=2097152"),
        ("...", "retention.ms=-1"),
    ):
        (line,) = [each for each in told.splitlines() if each.startswith(f"Topic: {name}\tTopicId")]
        assert words in line
    rights = cluster.acl_tool("--list")
    for words in (
        f"principal={CERTIFICATE}, host=*, operation=READ, permissionType=ALLOW",
        # as Java writes an address, with which Kafka compares it
        "principal=User:a:b, host=2001:db8:0:0:0:0:0:1, operation=ALL, permissionType=ALLOW",
        "name=team *, ü, patternType=LITERAL",
        "principal=User:a:b, host=*, operation=IDEMPOTENT_WRITE, permissionType=ALLOW",
    ):
        assert words in rights, rights
    limits = cluster.tool(
        CONFIG, "--describe", "--entity-type", "users", "--entity-type", "clients"
    )
    for words in (
        "Quota configs for the default user-principal, the default client-id are request_percentage=12.5",
        "Quota configs for the default user-principal, client-id 'a/b %2F' are producer_byte_rate=1048576.0",
        "Quota configs for user-principal 'CN=x, O=y', the default client-id are consumer_byte_rate=1024.0",
    ):
        assert words in limits, limits
    for user in USERS:
        for mechanism in user["mechanisms"]:
            assert logs_in(cluster, user["name"], user["password"], mechanism), (user, mechanism)
            assert not logs_in(cluster, user["name"], "another one", mechanism)

    again = inventory.play("state.yml")
    assert set(again.lines.values()) == {"as declared"} and again.changed == 0, again.text
    other = Adopted(tmp_path / "second" / "inventory", hosts_of(cluster))
    other.export()
    applied = other.play("state.yml", "--diff")
    assert set(applied.lines.values()) == {"as declared"} and applied.changed == 0, applied.text
    exported = yaml.load(other.state.read_text(), Unsafe)
    assert {each["name"] for each in TOPICS} <= {each["name"] for each in exported["kafka_topics"]}
    taken_away(cluster)


class Unsafe(yaml.SafeLoader):
    """Reads what stands behind !unsafe as the text that it is."""


Unsafe.add_constructor("!unsafe", lambda loader, node: node.value)


class _Text(str):
    """A text that Ansible must not take for a template."""


yaml.SafeDumper.add_representer(
    _Text, lambda dumper, text: dumper.represent_scalar("!unsafe", str(text), style="'")
)


def unsafe(found):
    """The same, with every text that holds a template as what it says."""
    if isinstance(found, dict):
        return {key: unsafe(value) for key, value in found.items()}
    if isinstance(found, list):
        return [unsafe(each) for each in found]
    return _Text(found) if isinstance(found, str) and "{{" in found else found


def logs_in(cluster, name, password, mechanism):
    """Whether somebody who is not us gets in by this password."""
    settings = {
        **cluster.client_settings(),
        "sasl.mechanism": mechanism,
        "sasl.username": name,
        "sasl.password": password,
    }
    refused = []
    admin = AdminClient({**settings, "error_cb": refused.append, "log_level": 0})
    try:
        admin.list_topics(timeout=5)
    except Exception:  # pylint: disable=broad-exception-caught
        admin.poll(5)
        assert refused, "it is the login that fails"
        return False
    return True


def test_groups_of_odd_names(secured, admin, name):
    """Moved, told and deleted, as Kafka's own tool sees it."""
    names = [
        f"{name} with space",
        f"{name}:colon,comma=equals",
        f"{name} ü \"quoted\" 'twice' \\ back",
        f"{name} {{{{ 6 * 7 }}}} #",
        f"{name}{LONG}",
        f"{name}*",
    ]
    settings = secured.client_settings()
    create(secured, admin, name, 2)
    write(settings, name, {0: 9, 1: 9})
    for each in names:
        commit(settings, each, {(name, 0): 5, (name, 1): 9})
    told = secured.run("kafka_consumer_groups_info", groups=names)
    lags = {
        group["name"]: {
            (each["topic"], each["partition"]): each["lag"] for each in group["partitions"]
        }
        for group in told.groups
    }
    assert lags == {each: {(name, 0): 4, (name, 1): 0} for each in names}, told.values
    back = [{"name": each, "to": "earliest"} for each in names]
    checked = secured.run("kafka_consumer_groups", True, groups=back, allow=["reread"])
    done = secured.run("kafka_consumer_groups", groups=back, allow=["reread"])
    assert (
        done.changed and done.plan == checked.plan and len(done.plan["changes"]) == 2 * len(names)
    )
    for each in names:
        found = {key: committed[0] for key, committed in told_by_kafka(secured, each).items()}
        assert found == {(name, 0): 0, (name, 1): 0}
    taken_back = secured.run("kafka_consumer_groups", groups=done.before, allow=["skip"])
    assert taken_back.changed, taken_back.values
    gone = [{"name": each, "state": "absent"} for each in names]
    assert secured.run("kafka_consumer_groups", groups=gone, allow=["delete"]).changed
    assert secured.run("kafka_consumer_groups", groups=gone).changed is False
    assert not set(names) & {
        each.group_id for each in admin.list_consumer_groups().result(30).valid
    }


def test_nobody_could_log_in_with_it(secured):
    """By no client that is not ours, and with a credential that Kafka's own tool has made: so it is refused."""
    made = ("Ünsal", "geheim")
    options = ("--alter", "--entity-type", "users", "--entity-name", made[0])
    added = ("--add-config", f"SCRAM-SHA-256=[iterations=4096,password={made[1]}]")
    secured.tool(CONFIG, *options, *added)
    assert not logs_in(secured, *made, "SCRAM-SHA-256")
    for name, password in (made, ("plain", " geheim")):
        refused = secured.run("kafka_users", users=[{"name": name, "password": password}])
        assert refused.failed and refused.checks == [("users.bad_value", name)], refused.values
        assert "geheim" not in refused.msg
    absent = [{"name": made[0], "state": "absent"}]
    assert secured.run("kafka_users", users=absent).changed
