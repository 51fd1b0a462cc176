# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A healthy cluster is never accused, however often it is asked and whatever is written."""

import random

import pytest

from tests.support import verdict_schema

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def options_of(seed):
    """What one run is given; each seed something else."""
    chance = random.Random(seed)
    partitions, size = chance.choice((3, 4, 6, 13)), chance.choice((48, 100, 1000))
    options = [f"--partitions={partitions}", f"--record-size={size}"]
    options += [f"--replication-factor={chance.choice((1, 2, 3))}", f"--groups={seed % 3}"]
    options += [f"--producers={chance.randint(1, 3)}"]
    options += [f"--producer-property=compression.type={chance.choice(CODECS)}"]
    how = chance.choice(("plain", "plain", "transactions", "rate"))
    if how == "transactions":
        options.append("--transactional")
    if how == "rate":
        options.append(f"--rate={chance.choice((5_000, 20_000))}")
    return options


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100))
def test_a_healthy_cluster_is_never_accused(spark, cluster, tmp_path, seed):
    """It writes 10,000 records, judges them, and judges them once more from the ledger."""
    import job
    from flow import steps

    where = [f"--bootstrap-servers={cluster.bootstrap_servers}", f"--output={tmp_path}"]
    where += [f"--ledger={tmp_path}/ledger"]
    options = options_of(seed)
    for mode, more in (("run", [*options, "--records=10000", "--keep"]), ("verify", [])):
        code = getattr(steps, mode)(job.arguments([mode, *where, *more]))
        verdict = verdict_schema.read(tmp_path / "verdict.json")
        failed = [check for check in verdict["checks"] if check["status"] == "fail"]
        assert (code, failed) == (0, []), (options, verdict["summary"])
        assert verdict["counts"]["acked"] == 10_000 or "--transactional" in options
    from flow.prepare.cluster import Cluster

    topic = verdict["topic"]["name"]
    Cluster({"bootstrap.servers": cluster.bootstrap_servers}, 60).delete_topic(
        topic, until_gone=True
    )
