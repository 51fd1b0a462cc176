# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""kafka_users against real brokers of both modes: what counts is who can log in afterwards."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
)

from ansible_collections.kafkaops.cluster.plugins.module_utils.admin.users.client import UserClient
from tests.support.outside import wait_until
from tests.support.run_module import run_module

SHA_256, SHA_512 = "SCRAM-SHA-256", "SCRAM-SHA-512"
SECRETS = ("first secret", "second secret", "third secret")


def logs_in(cluster, user, password, mechanism=SHA_512, agreed=True):
    """Whether a client that is not ours gets in, at each broker by itself; not `agreed`: at any."""
    found = set()
    for server in cluster.bootstrap_servers.split(","):
        errors = []
        client = AdminClient(
            {
                "bootstrap.servers": server,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": mechanism,
                "sasl.username": user,
                "sasl.password": password,
                "error_cb": lambda error, errors=errors: errors.append(error.name()),
                "log_level": 0,
            }
        )
        try:
            client.list_topics(timeout=5)
            found.add(True)
        except KafkaException:
            client.poll(0)
            assert "_AUTHENTICATION" in errors, errors
            found.add(False)
    assert len(found) == 1 or not agreed, "brokers differ"
    return found.pop()


def stored(admin, name):
    """Iterations by mechanism, as a client that is not ours is told them."""
    found = admin.describe_user_scram_credentials().result()
    infos = found[name].scram_credential_infos if name in found else ()
    return {info.mechanism.name.replace("_", "-"): info.iterations for info in infos}


def test_created_unchanged_changed_and_removed_without_any_password_in_the_output(
    secured, admin, name
):
    users = [{"name": name, "password": SECRETS[0], "mechanisms": [SHA_256, SHA_512]}]
    checked = secured.run("kafka_users", check=True, users=users)
    assert checked.changed and not stored(admin, name)
    done = secured.run("kafka_users", users=users)
    assert (done.changed, done.plan, done.diff) == (True, checked.plan, checked.diff), done.msg
    assert stored(admin, name) == {SHA_256: 4096, SHA_512: 4096}
    assert done.users == [{"name": name, "iterations": {SHA_256: 4096, SHA_512: 4096}}]
    for mechanism in (SHA_256, SHA_512):
        assert logs_in(secured, name, SECRETS[0], mechanism)
    again = secured.run("kafka_users", users=users)
    assert not again.changed and not again.plan["changes"]

    users[0]["password"] = SECRETS[1]
    assert not secured.run("kafka_users", users=users, update_password="on_create").changed
    checked = secured.run("kafka_users", check=True, users=users)
    assert logs_in(secured, name, SECRETS[0])
    changed = secured.run("kafka_users", users=users)
    assert changed.plan == checked.plan and changed.kinds == [
        ("change", f"{name} {SHA_256}"),
        ("change", f"{name} {SHA_512}"),
    ]
    assert logs_in(secured, name, SECRETS[1]) and not logs_in(secured, name, SECRETS[0])

    users[0].update(iterations=8192, mechanisms=[SHA_512])
    hashed = secured.run("kafka_users", users=users)
    assert hashed.kinds == [("change", f"{name} {SHA_512}")]
    assert f"{name} {SHA_256}" in str(hashed.warnings), "an undeclared mechanism stays valid"
    assert stored(admin, name) == {SHA_256: 4096, SHA_512: 8192}
    # A new password by itself leaves the number as it is.
    del users[0]["iterations"]
    users[0]["password"] = SECRETS[2]
    assert secured.run("kafka_users", users=users).changed
    assert stored(admin, name)[SHA_512] == 8192 and logs_in(secured, name, SECRETS[2])

    gone = secured.run("kafka_users", users=[{"name": name, "state": "absent"}])
    assert len(gone.kinds) == 2 and gone.users == [] and not stored(admin, name)
    # Nobody can ask a broker whether it still knows a user that is gone.
    wait_until(lambda: not logs_in(secured, name, SECRETS[2], agreed=False), 20, "refused")
    assert not secured.run("kafka_users", users=[{"name": name, "state": "absent"}]).changed
    for result in (checked, done, again, changed, hashed, gone):
        assert not any(secret in str(result.values) for secret in SECRETS)


def test_it_is_what_kafkas_own_tool_makes_and_sees(secured, name):
    users = [{"name": name, "password": SECRETS[0]}]
    config = f"{SHA_512}=[iterations=8192,password={SECRETS[0]}]"
    about = ("--entity-type", "users", "--entity-name", name)
    secured.tool("kafka.admin.ConfigCommand", "--alter", *about, "--add-config", config)
    unchanged = secured.run("kafka_users", users=users)
    assert not unchanged.failed and not unchanged.changed
    users[0]["password"] = SECRETS[1]
    assert secured.run("kafka_users", users=users).kinds == [("change", f"{name} {SHA_512}")]
    told = secured.tool("kafka.admin.ConfigCommand", "--describe", *about)
    assert f"{SHA_512}=iterations=8192" in told


def test_without_a_login_it_says_so_and_does_not_guess(secured, admin, name):
    """The brokers' own listener has no passwords."""
    plain = {"bootstrap_servers": secured.bare.bootstrap_servers, "timeout": 20}
    users = [{"name": name, "password": SECRETS[0]}]
    # A user who is new needs no trial.
    assert run_module("kafka_users", {**plain, "users": users}).changed
    refused = run_module("kafka_users", {**plain, "users": users})
    assert refused.checks == [("users.untried", f"{name} {SHA_512}")] and not refused.changed
    assert "speaks PLAINTEXT" in refused.msg
    for way in (
        {"update_password": "on_create"},
        {"login": {"bootstrap_servers": [secured.bootstrap_servers]}},
    ):
        result = run_module("kafka_users", {**plain, **way, "users": users})
        assert not result.failed and not result.changed, result.values
    elsewhere = {"login": {"bootstrap_servers": [secured.bare.bootstrap_servers]}}
    refused = run_module("kafka_users", {**plain, **elsewhere, "users": users})
    assert refused.checks == [("users.untried", f"{name} {SHA_512}")]
    assert stored(admin, name) == {SHA_512: 4096}


def test_a_user_without_rights_is_told_which_one_it_needs(secured, admin, name):
    users = [{"name": name, "password": SECRETS[0]}]
    refused = secured.run("kafka_users", user="nobody", users=users)
    assert refused.failed and "Describe on the cluster" in refused.msg
    describe = {"cluster": True, "principal": "team", "operations": ["describe"]}
    assert secured.run("kafka_acls", acls=[describe]).changed
    refused = secured.run("kafka_users", user="team", users=users)
    assert refused.checks == [("users.rights", "User:team")] and not refused.changed
    assert secured.run("kafka_acls", acls=[{**describe, "state": "absent"}]).changed
    assert not stored(admin, name)


def test_wrong_items_are_refused_together_and_without_their_passwords(secured, admin, name):
    users = [
        {"name": name, "password": SECRETS[0]},
        {"name": name, "password": SECRETS[1], "mechanisms": [SHA_512]},
        {"name": "numbered", "password": 12345},
        {"name": 12, "password": SECRETS[0]},
        {"name": "few", "password": SECRETS[0], "iterations": 100},
        {"name": "none"},
    ]
    refused = secured.run("kafka_users", users=users)
    assert sorted(refused.checks) == [
        ("users.bad_value", "few"),
        ("users.bad_value", "none"),
        ("users.bad_value", "numbered"),
        ("users.bad_value", "users[3]"),
        ("users.duplicate", name),
    ]
    assert not refused.changed and not stored(admin, name)
    assert not any(secret in str(refused.values) for secret in (*SECRETS, "12345"))


def test_its_own_password_can_be_changed_and_its_own_credential_needs_consent(secured, name):
    rights = {"cluster": True, "principal": name, "operations": ["alter", "describe"]}
    assert secured.run("kafka_acls", acls=[rights]).changed
    users = [{"name": name, "password": SECRETS[0]}]
    assert secured.run("kafka_users", users=users).changed
    own = {
        **secured.arguments(),
        "sasl_mechanism": SHA_512,
        "sasl_username": name,
        "sasl_password": SECRETS[0],
    }
    users[0]["password"] = SECRETS[1]
    done = run_module("kafka_users", {**own, "users": users})
    assert done.changed and not done.failed, done.msg
    assert "who runs this" in str(done.warnings)
    own["sasl_password"] = SECRETS[1]
    gone = [{"name": name, "state": "absent"}]
    refused = run_module("kafka_users", {**own, "users": gone})
    assert refused.checks == [("users.lockout", f"{name} {SHA_512}")]
    assert logs_in(secured, name, SECRETS[1])
    assert secured.run("kafka_users", users=gone).changed
    assert secured.run("kafka_acls", acls=[{**rights, "state": "absent"}]).changed


def test_what_a_broker_refuses_is_named_and_the_rest_is_done(secured, admin, name, monkeypatch):
    """Brokers take no credential of so few iterations; the plan refuses them before, so they come in behind it."""
    pair = [f"{name}-a", f"{name}-b"]
    change = UserClient.change_credentials

    def weakened(self, changes, deadline):
        for each in changes:
            if each.subject.startswith(f"{pair[0]} "):
                each.after["iterations"] = 1
        return change(self, changes, deadline)

    monkeypatch.setattr(UserClient, "change_credentials", weakened)
    users = [
        {"name": each, "password": SECRETS[0], "mechanisms": ["SCRAM-SHA-512"]} for each in pair
    ]
    failed = secured.run("kafka_users", users=users)
    assert failed.failed and failed.changed and "1 of 2 changes" in failed.msg, failed.msg
    assert [(each["name"], each["code"]) for each in failed.failed_items] == [
        (f"{pair[0]} {SHA_512}", "UNACCEPTABLE_CREDENTIAL")
    ]
    assert list(failed.diff["after"]) == [f"{pair[1]} {SHA_512}"]
    assert stored(admin, pair[1]) and not stored(admin, pair[0])


@pytest.mark.parametrize("number", [10, 60])
def test_sixty_users_are_one_request_and_one_login_each(secured, admin, name, number, monkeypatch):
    clients = []
    make = UserClient.__init__

    def noted(self, *arguments, **options):
        make(self, *arguments, **options)
        clients.append(self)

    monkeypatch.setattr(UserClient, "__init__", noted)
    users = [{"name": f"{name}-{each}", "password": SECRETS[0]} for each in range(number)]
    gone = [{"name": each["name"], "state": "absent"} for each in users]
    for items, changed in ((users, True), (users, False), (gone, True)):
        result = secured.run("kafka_users", users=items)
        assert (result.failed, result.changed) == (False, changed), result.values.get("msg")
    created, unchanged, removed = (client.requests for client in clients)
    assert created["create"] == removed["delete"] == 1
    assert unchanged["logins"] == number and not unchanged["create"] + unchanged["change"]
    assert unchanged["reading credentials"] == unchanged["describe_cluster"] == 1
    assert not any(
        each.startswith(f"{name}-") for each in admin.describe_user_scram_credentials().result()
    )
