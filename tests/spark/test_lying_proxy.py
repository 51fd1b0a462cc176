# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The judge behind proxies that lie: records dropped, repeated, swapped and altered between a client
and its broker, while the cluster itself does nothing wrong.
"""

import struct
from dataclasses import replace

import pytest

from tests.spark.disturbing import accusations
from tests.support import verdict_schema
from tests.support.lying_proxy import LyingProxy

RECORDS, PARTITIONS = 3000, 3
CONTROL_BATCH = 0x20


@pytest.fixture(name="proxies", scope="module")
def proxies_fixture(cluster):
    """One for each broker, between their announced addresses and the brokers."""
    with LyingProxy.before_brokers(cluster, cluster.broker_instances) as proxies:
        yield proxies


@pytest.fixture(autouse=True)
def truth(proxies):
    """Each test begins with honest proxies."""
    tell(proxies)


def tell(proxies, on_produce=None, on_fetch=None):
    """Let all of them tell these lies, and nothing but the truth otherwise."""
    for proxy in proxies:
        proxy.on_produce, proxy.on_fetch, proxy.told = on_produce, on_fetch, 0


def told(proxies):
    return sum(proxy.told for proxy in proxies)


class Once:
    """A lie about the batch that holds one record of ours: `change(batch, index of the record)`."""

    def __init__(self, partition, sequence, change):
        self._wanted, self._change, self._done = (partition, sequence), change, False
        self.size = 0  # records in the batch

    def __call__(self, batch):
        for index, record in enumerate(batch.records):
            if not self._done and place(record) == self._wanted:
                self._done, self.size = True, len(batch.records)
                return self._change(batch, index)
        return None


class Always(Once):
    """The same lie each time the batch is asked for, as a broken broker would tell it."""

    def __call__(self, batch):
        self._done = False
        return super().__call__(batch)


def place(record):
    """(partition, sequence) of a record of the job, by docs/validation-format.md."""
    if record.value is None or len(record.value) < 48:
        return None
    return struct.unpack_from(">IQ", record.value, 28)


def with_records(batch, records):
    """The batch with these records, numbered anew."""
    records = tuple(replace(record, delta=index) for index, record in enumerate(records))
    return replace(batch, records=records, last_delta=len(records) - 1)


def drop(batch, index):
    return with_records(batch, batch.records[:index] + batch.records[index + 1 :])


def keep_only(batch, index):
    return with_records(batch, batch.records[index : index + 1])


def repeat(batch, index):
    return with_records(batch, (*batch.records, batch.records[index]))


def swap(batch, index):
    records = list(batch.records)
    one, other = records[index], records[index + 1]
    records[index] = replace(one, key=other.key, value=other.value, headers=other.headers)
    records[index + 1] = replace(other, key=one.key, value=one.value, headers=one.headers)
    return replace(batch, records=tuple(records))


def alter(batch, index):
    records = list(batch.records)
    value = bytearray(records[index].value)
    value[70] ^= 0x01
    records[index] = replace(records[index], value=bytes(value))
    return replace(batch, records=tuple(records))


def intrude(batch, index):
    stranger = replace(batch.records[index], value=b"not a record of this run")
    return with_records(batch, (*batch.records, stranger))


def hide(batch, _index):
    return replace(batch, attributes=batch.attributes | CONTROL_BATCH)


def run(cluster, directory, *more):
    """Validate through the proxies; (exit code, verdict)."""
    import job
    from flow import steps

    servers = ",".join(cluster.announced_address("PROXY", n) for n in cluster.broker_instances)
    where = [f"--ledger={directory}/ledger", f"--output={directory}"]
    size = [f"--records={RECORDS}", f"--partitions={PARTITIONS}", *more]
    code = steps.run(job.arguments(["run", f"--bootstrap-servers={servers}", *where, *size]))
    return code, verdict_schema.read(directory / "verdict.json")


def found(verdict):
    """check -> (count, (partition, sequence) of the first witness)."""
    return {
        check["id"]: (
            check["count"],
            (check["witnesses"][0]["partition"], check["witnesses"][0]["sequence"]),
        )
        for check in verdict["checks"]
        if check["status"] == "fail"
    }


def test_an_honest_proxy_is_no_violation(spark, cluster, proxies, tmp_path):
    def nothing(_batch):
        return None

    tell(proxies, on_produce=nothing, on_fetch=nothing)
    code, verdict = run(cluster, tmp_path)
    assert (code, accusations(verdict), told(proxies)) == (0, [], 0)


@pytest.mark.parametrize(
    "change, sequence, expected",
    [
        (drop, 0, {"loss": (1, (2, 0))}),
        (drop, 500, {"loss": (1, (2, 500))}),
        (drop, 999, {"loss": (1, (2, 999))}),
        (repeat, 999, {"duplicate": (1, (2, 999))}),
        (alter, 0, {"corrupt": (1, (2, 0))}),
        (alter, 999, {"corrupt": (1, (2, 999))}),
        (intrude, 500, {"phantom": (1, (2, None))}),
    ],
)
def test_a_lie_about_one_written_record_is_named(
    spark, cluster, proxies, tmp_path, change, sequence, expected
):
    lie = Once(2, sequence, change)
    tell(proxies, on_produce=lie)
    code, verdict = run(cluster, tmp_path)
    assert told(proxies) == 1
    assert (code, found(verdict)) == (1, expected)


def test_records_swapped_on_their_way_in_are_named(spark, cluster, proxies, tmp_path):
    lie = Once(1, 500, swap)
    tell(proxies, on_produce=lie)
    code, verdict = run(cluster, tmp_path)
    assert told(proxies) == 1
    assert (code, found(verdict)) == (1, {"order": (1, (1, 500))})


def test_a_batch_that_was_thrown_away_is_lost_record_by_record(spark, cluster, proxies, tmp_path):
    lie = Once(0, 100, keep_only)
    tell(proxies, on_produce=lie)
    code, verdict = run(cluster, tmp_path, "--producer-property=batch.num.messages=200")
    assert told(proxies) == 1 and 100 < lie.size <= 200
    assert (code, found(verdict)) == (1, {"loss": (lie.size - 1, (0, 0))})


def test_a_lie_told_to_readers_is_named(spark, cluster, proxies, tmp_path):
    lie = Always(2, 321, alter)
    tell(proxies, on_fetch=lie)
    code, verdict = run(cluster, tmp_path)
    assert told(proxies) >= 1
    assert (code, found(verdict)) == (1, {"corrupt": (1, (2, 321))})


def test_what_is_hidden_from_readers_is_named(spark, cluster, proxies, tmp_path):
    lie = Always(0, 321, hide)
    tell(proxies, on_fetch=lie)
    # librdkafka does not get past such a batch, and its groups wait for the rest until the timeout
    more = ("--producer-property=batch.num.messages=200", "--timeout=10")
    code, verdict = run(cluster, tmp_path, *more)
    assert told(proxies) >= 1
    failed = found(verdict)
    assert (code, set(failed)) == (1, {"loss", "gap"})
    assert failed["loss"][0] == failed["gap"][0] == lie.size
