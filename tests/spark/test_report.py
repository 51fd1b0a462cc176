# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page and the times in it, without Spark, Kafka or a browser: buckets, scales, escaping, and
verdicts in which there is nothing, or next to nothing. tests/page looks at the page with Chromium.
"""

import html.parser
import json
import math
import re
import shlex

import job
import jsonschema
import pytest
from flow.judge import verdict
from flow.present import plots, report, sentence
from flow.record import timing
from hypothesis import given
from hypothesis import strategies as st

from tests.support import verdict_schema, verdicts

START = verdicts.START_MS


# -- times


def collected(moments_ms, bucket_ms):
    """Rows of the judging pass for records with these timestamps, all in partition 0."""
    buckets = {}
    for moment in moments_ms:
        buckets.setdefault(moment // bucket_ms, []).append(moment)
    return [
        {**verdicts.row(0, 0, bucket_ms, len(found)), "bucket": number,
         "first_ms": min(found), "last_ms": max(found)}
        for number, found in buckets.items()
    ]  # fmt: skip


@given(
    st.lists(st.integers(0, 2000), min_size=1, max_size=60),
    st.sampled_from([1, 2, 5, 10, 50, 100, 1000]),
)
def test_every_pause_of_a_bucket_or_more_is_found_to_the_millisecond(offsets, bucket_ms):
    moments = sorted(START + o for o in offsets)
    seen = timing.observe(
        timing.Clock(timing.APPENDED, bucket_ms, 1), collected(moments, bucket_ms)
    )
    long = [(a, b) for a, b in zip(moments, moments[1:]) if b - a >= bucket_ms]
    assert timing.pauses(seen.partitions[0], bucket_ms) == long
    most = max((b - a for a, b in long), default=None)
    assert timing.longest_pause_ms(seen, [0]) == most
    written = timing.to_json(seen, timing.Acknowledgements())
    assert (written["longest_pause"] or {}).get("ms") == most
    assert (written["first_ms"], written["last_ms"]) == (moments[0], moments[-1])
    assert sum(written["series"]["records"]) == len(moments)


def test_a_topic_pauses_only_while_all_its_partitions_do():
    clock = timing.Clock(timing.APPENDED, 10, 1)
    rows = [verdicts.row(0, START, 10, 1), verdicts.row(0, START + 500, 10, 1),
            verdicts.row(1, START + 200, 10, 1)]  # fmt: skip
    seen = timing.observe(clock, rows)
    assert timing.longest_pause_ms(seen, [0]) == 500
    assert timing.longest_pause_ms(seen, [0, 1]) == 300
    assert timing.longest_pause_ms(seen, [1]) is None
    assert timing.longest_pause_ms(seen, [7]) is None


def by_clocks(ahead_ms, until_ms=1000):
    """Of three partitions with a record every ten milliseconds, whose leaders' clocks are so far ahead."""
    rows = []
    for number, ahead in enumerate(ahead_ms):
        for moment in range(0, until_ms, 10):
            least = {"latency_class": 1, "least_latency": ahead * 1000 + 900, "most_latency": 10**7}
            rows.append({**verdicts.row(number, START + ahead + moment, 10, 1), **least})
    return timing.observe(timing.Clock(timing.APPENDED, 10, 1), rows)


def test_leaders_clocks_make_no_pause_and_no_rate():
    """One broker without NTP, three seconds ahead: nothing paused, and nothing was slow."""
    seen = by_clocks([0, 0, 3000])
    assert seen.apart_ms() == 3000
    told = timing.to_json(seen, timing.Acknowledgements(), verdicts.took(300))
    hidden = ("longest_pause", "records_per_second", "leaders_apart_ms")
    assert [told[name] for name in hidden] == [None, None, 3000]
    page = report.page(verdicts.document("pass", "x", seen, partitions=3))
    assert "clocks differ by that, so no pause or rate of the whole topic is told" in page
    assert "No pause of" not in page and "<dd>not known</dd>" in page


@pytest.mark.parametrize("ahead_ms", [[0, 0, 0], [0, 5, 150]])
def test_clocks_that_agree_hide_nothing(ahead_ms):
    told = timing.to_json(by_clocks(ahead_ms), timing.Acknowledgements())
    assert told["leaders_apart_ms"] is None and told["records_per_second"] > 250


def test_records_that_waited_for_their_leader_have_a_pause():
    """Their acknowledgements took as long, which is by a clock of their own."""
    waited = timing.Latencies()
    waited.add(3.1)
    told = timing.to_json(by_clocks([0, 0, 3000]), timing.Acknowledgements(), waited)
    assert told["longest_pause"]["ms"] == 2010 and told["leaders_apart_ms"] is None
    assert told["records_per_second"] < 100


def test_a_run_that_is_much_longer_than_clocks_differ_has_a_rate():
    told = timing.to_json(by_clocks([0, 0, 3000], 20_000), timing.Acknowledgements())
    assert told["leaders_apart_ms"] == 3000 and 250 < told["records_per_second"] < 301


@given(
    st.lists(st.tuples(st.integers(0, 500_000), st.integers(1, 9)), max_size=80),
    st.lists(st.tuples(st.integers(0, 500_000), st.integers(1, 9)), max_size=80),
    st.integers(0, 3),
)
def test_acknowledgements_are_all_there_and_a_pause_is_never_overstated(one, other, widened):
    mine, theirs = timing.Acknowledgements(), timing.Acknowledgements()
    for told, moments in ((mine, one), (theirs, other)):
        for offset, records in moments:
            told.add(START + offset, records)
    for _turn in range(widened):
        theirs.widen()
    again = timing.Acknowledgements(**json.loads(json.dumps(theirs.to_json())))
    mine.merge(again)
    series = mine.series()
    assert (series is None) == (not one and not other)
    if series:
        assert series["bucket_ms"] == 100 * 2**widened
        assert sum(series["records"]) == sum(records for _offset, records in one + other)
        assert series["records"][0] and series["records"][-1]
        moments = sorted(START + offset for offset, _records in one + other)
        assert series["start_ms"] <= moments[0] < series["start_ms"] + series["bucket_ms"]
        longest = max((b - a for a, b in zip(moments, moments[1:])), default=0)
        assert longest - 2 * series["bucket_ms"] < series["longest_pause_ms"] <= longest


def test_acknowledgements_of_a_long_run_are_as_few_as_those_of_a_short_one():
    told = timing.Acknowledgements()
    for second in range(3600):
        told.add(START + 1000 * second, 5)
    told.add(START, 0)
    assert len(told.counts) <= timing.Acknowledgements.MOST
    assert sum(told.series()["records"]) == 5 * 3600
    assert told.series()["longest_pause_ms"] == 0


def test_a_slow_run_of_many_minutes_keeps_its_acknowledgements():
    """Few steps have anything in them, so that none became wider while it ran."""
    told = timing.Acknowledgements()
    for minute in range(60):
        told.add(minute * 60_000, 5)
    series = told.series()
    assert sum(series["records"]) == 300 and len(series["records"]) <= 10 * told.MOST
    assert series["longest_pause_ms"] == 59_600  # whole steps of 400 ms between two minutes
    told.add(61 * 24 * 3600 * 1000, 1)
    assert told.series() is None, "a clock was set"


def test_acknowledgements_of_a_clock_that_jumped_make_no_page_of_zeros():
    told = timing.Acknowledgements()
    told.add(START, 1)
    told.add(START + 10**10, 1)
    assert told.series() is None


@given(st.integers(0, 80))
def test_classes_of_latencies_join_without_a_gap(number):
    low, high = timing.class_edges_ms(number)
    assert low < high
    assert high == pytest.approx(timing.class_edges_ms(number + 1)[0])
    if number:
        assert high / low == pytest.approx(2 ** (1 / timing.CLASSES_PER_OCTAVE))


@given(st.dictionaries(st.integers(0, 60), st.integers(1, 1000), min_size=1), st.floats(0.01, 1))
def test_a_quantile_is_never_understated(classes, share):
    most = timing.class_edges_ms(max(classes))[1]
    told = timing.quantile_ms(classes, share, most)
    total = sum(classes.values())
    at_or_below = sum(n for k, n in classes.items() if timing.class_edges_ms(k)[1] <= told + 1e-3)
    assert at_or_below >= share * total - 1e-6


def test_a_quantile_is_not_above_the_greatest_latency():
    assert timing.quantile_ms({20: 5}, 0.5, 28.5) == 28.5


def test_clocks_that_differ_are_told():
    clock = timing.Clock(timing.APPENDED, 10, 1)
    rows = [verdicts.row(0, START, 10, 3, timing.BEFORE_SENT, -250.0)]
    latency = timing.to_json(timing.observe(clock, rows), timing.Acknowledgements())["latency"]
    assert latency["classes"] == [{"from_ms": None, "to_ms": 0.0, "records": 3}]
    assert (latency["min_ms"], latency["max_ms"], latency["p50_ms"]) == (-250.0, 0.0, 0.0)
    page = report.page(verdicts.document("pass", "x", timing.observe(clock, rows)))
    assert "3 were appended before they were sent, by up to 250 ms" in page


@pytest.mark.parametrize(
    "seconds,partitions,records,bucket_ms,every",
    [
        (0, 3, 0, 1, 1),
        (0.5, 6, 50_000, 2, 1),
        (20, 12, 10_000_000, 200, 256),
        (3600, 6, 10**9, 20_000, 32_768),
        (20, 5000, 50_001, 500, 2),
    ],
)
def test_the_clock_keeps_what_is_collected_small(seconds, partitions, records, bucket_ms, every):
    clock = timing.clock(timing.APPENDED, seconds, partitions, records)
    assert (clock.bucket_ms, clock.sampled_every) == (bucket_ms, every)


def test_a_clock_that_jumps_makes_no_page_of_zeros():
    clock = timing.Clock(timing.APPENDED, 1, 1)
    rows = [verdicts.row(0, START, 1, 1), verdicts.row(0, START + 10**9, 1, 1)]
    result = verdicts.document("pass", "x", timing.observe(clock, rows), 1, 1)
    assert result["timing"]["series"] == {"start_ms": None, "records": []}
    assert "A clock jumped" in report.page(result)


# -- scales


@given(st.floats(1e-3, 1e12), st.integers(2, 12))
def test_ticks_are_few_round_and_reach_the_end(most, ticks):
    values = plots.steps(most, ticks)
    assert values[0] == 0 and most * (1 - 1e-6) <= values[-1] and len(values) <= ticks + 1
    step = values[1] / 10 ** math.floor(math.log10(values[1]) + 1e-9)
    assert round(step, 6) in (1, 2, 5)


def test_scales_put_their_ends_at_the_ends():
    assert [plots.linear(0, 10, 100, 0)(v) for v in (0, 5, 10)] == [100, 50, 0]
    assert plots.linear(3, 3, 0, 10)(3) == 5
    across = plots.logarithmic(0.1, 1000, 0, 400)
    assert [round(across(v)) for v in (0.1, 1, 10, 1000)] == [0, 100, 200, 400]
    assert plots.decades(0.5, 1000) == [1, 10, 100, 1000]
    assert plots.decades(0.01, 1) == [0.01, 0.1, 1]
    assert plots.steps(0, 5) == [0, 1]


@pytest.mark.parametrize(
    "milliseconds,said",
    [
        (None, "–"),
        (0.4, "< 1 ms"),
        (1, "1 ms"),
        (26.9, "26.9 ms"),
        (999.4, "999 ms"),
        (999.6, "1 s"),
        (2150, "2.15 s"),
        (119_400, "119 s"),
        (119_600, "2 min 0 s"),
        (3_723_000, "62 min 3 s"),
    ],
)
def test_lengths_of_time_are_said_in_three_digits(milliseconds, said):
    assert plots.span(milliseconds) == said


def test_large_numbers_are_said_shortly():
    assert [plots.short(n) for n in (0, 1, 999, 1000, 600_000, 1.5e6, 2e9)] == [
        "0", "1", "999", "1k", "600k", "1.5M", "2G"
    ]  # fmt: skip


# -- the page


class Reader(html.parser.HTMLParser):
    """The text of a page, what it loads, and whether its elements are closed as they should be."""

    def __init__(self):
        super().__init__()
        self.words, self.links, self.tags, self.open = [], [], [], []

    def handle_data(self, data):
        self.words.append(data)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [v for k, v in attrs if k in ("src", "href", "data", "srcset", "action")]
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    @classmethod
    def of(cls, page):
        reader = cls()
        reader.feed(page)
        assert not reader.open
        return reader


@pytest.mark.parametrize("make", verdicts.ALL, ids=lambda make: make.__name__)
def test_every_page_is_whole_and_loads_nothing(make):
    document = make()
    page = report.page(document)
    seen = Reader.of(page)
    assert not seen.links and "script" not in seen.tags
    # one reference, to the page's own pattern; nothing else can be fetched from a style
    assert set(re.findall(r"url\([^)]*\)|@import", page)) <= {"url(#hatch)"}
    assert document["verdict"].upper() in seen.words
    assert document["summary"] in seen.words
    assert all(word not in ("nan", "None", "inf") for word in seen.words)
    assert "nan" not in re.sub(r">[^<]*<", "><", page).lower()


def test_what_comes_from_outside_is_text():
    seen = Reader.of(report.page(verdicts.hostile()))
    assert seen.words.count(verdicts.HOSTILE) >= 6
    assert any(word.startswith(verdicts.HOSTILE + "xxx") for word in seen.words)


def test_page_says_what_the_verdict_says():
    document = verdicts.failing()
    document["checks"][0]["count"] = 1234
    words = " ".join(Reader.of(report.page(document)).words)
    assert "FAIL" in words and "1,234 violations" in words
    assert "Witnesses of loss: 401 of 1,234" in words
    assert verdict.MEANING["order"] in words
    assert "no record for 1.2 s" in words and "_MSG_TIMED_OUT" in words


@pytest.mark.parametrize(
    "make, words",
    [
        (verdicts.passing, ["nothing wrong", "brokers 3; refused 3; accepted 0"]),
        (verdicts.failing, ["1 violation of durability", "5e0c8a4f1b7d-min-isr (kept)"]),
        (verdicts.inconclusive, ["could not be judged: broker 2 neither accepted nor refused it"]),
    ],
)
def test_page_says_in_words_what_became_of_probes(make, words):
    seen = " ".join(Reader.of(report.page(make())).words)
    assert "Probes" in seen and all(each in seen for each in words)
    assert "Probes" not in report.page({**make(), "probes": []})


def test_nothing_read_has_no_plots_and_says_so():
    words = Reader.of(report.page(verdicts.nothing_read())).words
    assert words.count("Nothing of this run was read.") == 2


def test_without_append_times_there_is_no_latency_and_the_page_says_why():
    page = report.page(verdicts.inconclusive())
    assert "Not measured: the topic keeps the producers" in page
    assert "when their producers sent them" in page


def test_of_many_partitions_those_with_the_longest_pauses_are_drawn():
    page = report.page(verdicts.many_partitions())
    assert "Drawn are the 40 of 120 partitions" in page
    assert ">7 · broker 8</text>" in page


def test_each_plot_is_drawn_for_a_phone_and_for_a_desk():
    page = report.page(verdicts.failing())
    assert re.findall(r"<div class='(narrow|wide)'><svg viewBox='0 0 (\d+)", page) == [
        ("narrow", "328"), ("wide", "780")
    ] * 4  # fmt: skip


# -- the schema


@pytest.mark.parametrize("make", verdicts.ALL, ids=lambda make: make.__name__)
def test_schema_describes_every_verdict(make):
    verdict_schema.check(make())


def test_schema_lists_the_checks_there_are():
    schema = verdict_schema.of("verdict")
    assert schema["$defs"]["check"]["properties"]["id"]["enum"] == list(verdict.MEANING)
    assert schema["properties"]["schema_version"]["const"] == verdict.SCHEMA_VERSION


@pytest.mark.parametrize(
    "spoil",
    [
        lambda d: d.pop("run_id"),
        lambda d: d.update(verdict="passed"),
        lambda d: d["counts"].update(read=-1),
        lambda d: d.update(checks=d["checks"][:8]),
        lambda d: d["checks"][1].update(count=3),
        lambda d: d["checks"][0].update(witnesses=[]),
        lambda d: d["timing"].update(longest_pause={"ms": 3}),
        lambda d: d["partitions"][0].pop("leader"),
        lambda d: d["probes"][0].update(name="min-irs"),
        lambda d: d["probes"][0].update(measured={"refused": "three"}),
    ],
)
def test_schema_refuses_what_is_not_a_verdict(spoil):
    document = verdicts.failing()
    spoil(document)
    with pytest.raises(jsonschema.ValidationError):
        verdict_schema.check(document)


def test_who_reads_by_the_schema_is_not_broken_by_a_new_key():
    """The schema promises that keys may be added: everywhere, not only at the top."""

    def added(value):
        if isinstance(value, dict):
            known = {name: added(each) for name, each in value.items()}
            counted = all(isinstance(each, int) for each in known.values())
            return known if counted and "acked" not in known else {**known, "new_key": 1}
        return [added(each) for each in value] if isinstance(value, list) else value

    document = verdicts.failing()
    grown = {
        **document,
        **{n: added(document[n]) for n in ("checks", "counts", "topic", "brokers")},
    }
    grown["timing"] = {**document["timing"], "new_key": 1}
    schema = verdict_schema.of("verdict")
    jsonschema.Draft202012Validator(schema).validate(json.loads(json.dumps(grown)))
    with pytest.raises(jsonschema.ValidationError):
        verdict_schema.check(grown)


WITNESS = {"topic": "t", "partition": 4, "producer": 0, "attempt": 0, "sequence": 0}


@pytest.mark.parametrize(
    "count, witness, words",
    [
        (1, {**WITNESS, "offset": 9, "records": 1, "reason": "acknowledged, not read"},
         "1 acknowledged record is lost (partition 4, led by broker 2, offset 9)"),
        (2000, {**WITNESS, "offset": 0, "last_offset": 1999, "records": 2000, "reason": "x"},
         "2,000 acknowledged records are lost (partition 4, led by broker 2, offsets 0 to 1999)"),
        (2001, {**WITNESS, "offset": 0, "last_offset": 1999, "records": 2000, "reason": "x"},
         "offsets 0 to 1999, and more)"),
        (7, {"partition": 5, "offset": 3, "records": 7, "reason": "the end offset fell from 10 to 3"},
         "(partition 5 the end offset fell from 10 to 3)"),
        (7, {"partition": 5, "offset": 3, "records": 7, "reason": "the first offset rose to 10, beyond 3"},
         "(partition 5 the first offset rose to 10, beyond 3)"),
        # what is missing stands nowhere, least of all behind the record that tells of it
        (99, {"partition": 4, "offset": 12, "records": 99, "reason": "numbers 1 to 99 of k are left out"},
         "(partition 4, led by broker 2, offset 12: numbers 1 to 99 of k are left out)"),
        (3, {**WITNESS, "offset": 17, "records": 3, "reason": "of its transaction, 0, 2 of 5 records are there"},
         "(partition 4, led by broker 2, offset 17: of its transaction, 0, 2 of 5 records are there)"),
        (1, {"broker": 3, "reason": "broker 3 led nothing"}, "(broker 3 led nothing)"),
    ],
)  # fmt: skip
def test_the_fail_line_is_a_sentence(count, witness, words):
    checks = [
        verdict.Check("loss", count, [witness]).to_json(),
        verdict.Check("gap").to_json(),
    ]
    said = sentence.of_failure("t", checks, {4: 2})
    assert said.startswith("topic t: ") and words in said and "gap" not in said


def test_what_now_repeats_no_secret_and_nothing_after_a_pass():
    options = {
        "bootstrap_servers": "a:1", "ledger": "/l x", "output": "/o",
        "command_config": "/c", "producer_property": ["sasl.password=secret"],
    }  # fmt: skip
    told = sentence.what_now(options, "t", False, True)
    assert told[-1].endswith(
        "job.py verify --bootstrap-servers=a:1 '--ledger=/l x' --output=/o --command-config=/c"
    )
    assert "secret" not in str(told)
    assert sentence.what_now(options, "t", True, True) == []


SPARK_AND_TIME = ["--master=spark://h:7077", "--spark-config=/s x", "--jars=/j", "--timeout=7.5"]


@pytest.mark.parametrize(
    ("mode", "more"),
    [
        *((mode, []) for mode in ("verify", "inspect")),
        *((mode, ["--timeout=60"]) for mode in ("verify", "inspect")),  # as it is anyway
        *((mode, SPARK_AND_TIME) for mode in ("verify", "inspect")),
        ("verify", ["--groups=0"]),
        ("verify", ["--groups=3", *SPARK_AND_TIME]),
    ],
)
def test_what_now_repeats_what_was_said_of_spark_time_and_groups(mode, more):
    of_verify = mode == "verify"
    where = ["--bootstrap-servers=a:1", "--ledger=/l" if of_verify else "--topic=t", "--output=/o"]
    options = vars(job.arguments([mode, *where, *more]))
    if of_verify:
        told = sentence.what_now(options, "t", False, True)
    else:
        told = sentence.what_now_of_others(options, "t", False)
    words = shlex.split(told[-1].split(": ", 1)[1])
    by = ["--by=key"] * (not of_verify)
    assert words == ["job.py", mode, *where, *by, *(each for each in more if "=60" not in each)]


def test_the_fail_line_names_a_partition_and_its_leader_once():
    lost = [
        {**WITNESS, "offset": 0, "last_offset": 9, "records": 10, "reason": "x"},
        {**WITNESS, "offset": 40, "records": 1, "reason": "x"},
        {**WITNESS, "partition": 5, "offset": 7, "records": 1, "reason": "x"},
    ]
    hole = {**WITNESS, "offset": 0, "records": 10, "reason": "offsets 0 to 9 hold nothing"}
    checks = [verdict.Check("loss", 12, lost).to_json(), verdict.Check("gap", 10, [hole]).to_json()]
    assert sentence.of_failure("t", checks, {4: 2, 5: 3}) == (
        "topic t: 12 acknowledged records are lost (partition 4, led by broker 2, offsets 0 to 9,"
        " offset 40; partition 5, led by broker 3, offset 7); 10 offsets hold nothing or are gone"
        " (partition 4 offsets 0 to 9 hold nothing)"
    )


@pytest.mark.parametrize(
    ("check", "count", "said"),
    [
        ("durability", 1, "1 promise of replicas does not hold"),
        ("compaction", 2, "2 records are not as compaction has them"),
        ("retention", 1, "1 record is not as retention has it"),
    ],
)
def test_the_fail_line_names_the_topic_of_a_probe_and_the_reason(check, count, said):
    """The leader of the run's partition with that number is another one."""
    witness = {"topic": "t-probe", "partition": 4, "offset": 7, "broker": 9, "reason": "it is so"}
    more = ", and more" * (count > 1)
    assert sentence.of_failure("t", [verdict.Check(check, count, [witness]).to_json()], {4: 2}) == (
        f"topic t: {said} (topic t-probe, partition 4, broker 9, offset 7: it is so{more})"
    )


def test_what_now_names_what_is_there_and_nothing_else():
    told = sentence.what_now(
        {"ledger": "/l"}, "t", False, True, probed={"retention": "t-retention"}
    )
    assert told[:2] == ["topic t is kept", "topic t-retention of the probe retention is kept"]
    assert sentence.what_now({"ledger": "/l"}, "t", False, True, gone=True) == ["the ledger is /l"]


def test_the_fail_line_of_a_topic_of_others_has_words_of_its_own():
    witness = {**WITNESS, "topic": "orders", "offset": 7, "reason": "first read at partition 0"}
    checks = [verdict.Check("duplicate", 2, [witness]).to_json()]
    said = sentence.of_failure("orders", checks, {4: 2}, inspected=True)
    assert said == (
        "topic orders: 2 records have the id of another (partition 4, led by broker 2, offset 7,"
        " and more)"
    )


def test_what_now_of_an_inspection_repeats_what_was_asked():
    options = {
        "bootstrap_servers": "a:1", "topic": "orders", "output": "/o", "id": "string(key)",
        "contiguous": True, "min_isr": 2, "again": "",
    }  # fmt: skip
    told = sentence.what_now_of_others(options, "orders", False)
    assert told[0] == "topic orders was only read, and is as it was"
    assert told[1].endswith(
        "job.py inspect --bootstrap-servers=a:1 --topic=orders --output=/o '--id=string(key)'"
        " --contiguous --min-isr=2"
    )
    assert sentence.what_now_of_others(options, "orders", True) == []


def test_whoever_started_the_job_may_say_how_to_repeat_it():
    options = {"ledger": "/l", "again": "ansible-playbook playbooks/validate.yml -e x=/l"}
    told = sentence.what_now(options, "t", False, True)
    assert told[-1] == "to judge it again: ansible-playbook playbooks/validate.yml -e x=/l"


def test_the_page_tells_of_leaders_settings_and_the_cluster():
    document = verdicts.failing()
    page = report.page(document)
    assert "<td data-name='was'>" in page or "data-name='was'>2<" in page
    assert "Ticks at the foot: leaders or replicas in sync changed." in page
    assert page.count("class='change'") == 2 * 3, "three moments, on a phone and on a desk"
    assert "The run wrote 1,000 records a second" in page
    assert "3.9.2, protocol 3.9-IV0" in page and "SCRAM-SHA-512" in page and "zstd" in page
    document["leadership"]["left_out"] = 1234
    assert "1,234 later ones are left out" in report.page(document)
    quiet = report.page(verdicts.passing())
    assert "None changed while the run wrote, nor until it was judged." in quiet
    assert "most of it is waiting in their queues" in quiet


@pytest.mark.parametrize("probed", [True, False])
def test_a_tick_says_nothing_of_a_write_that_nobody_tried(probed):
    document = verdicts.passing()
    if not probed:
        document["probes"] = []
    said = "a write below, if tried, is refused" in report.page(document)
    assert said is probed
    assert "Replicas and effective min.insync.replicas are as planned" in report.page(document)


def test_a_range_counts_for_all_of_its_records():
    page = report.page(verdicts.failing())
    assert "Witnesses of loss: 401 of 412" in page and "Witnesses of gap: 412 of 412" in page
    assert "which try of Spark&#x27;s at that task" in page


def test_the_page_of_an_old_ledger_leaves_out_what_it_does_not_know():
    document = verdicts.passing()
    for key in ("leadership", "cluster", "settings", "ended"):
        document.pop(key)
    document["timing"].pop("acknowledgement_latency")
    page = report.page(document)
    assert "Leaders and replicas in sync" not in page and "Time until acknowledged" not in page
    assert "latency, median" in page


def test_the_page_says_what_now_and_what_stayed_open():
    document = verdicts.failing()
    document["what_now"], document["unclear"] = ["the ledger is /l"], ["<1 record is unknown>"]
    page = report.page(document)
    assert "<h2>What now</h2><ul><li>the ledger is /l</li></ul>" in page
    assert "&lt;1 record is unknown&gt;" in page


@pytest.mark.parametrize("records", [0, 512])
def test_what_looks_like_a_pause_may_be_a_transaction_that_was_aborted(records):
    document = verdicts.failing()
    document["topic"]["transaction_records"] = records
    page = report.page(document)
    assert "hatched: pauses of" in page
    assert ("aborted makes one, too" in page) is bool(records)
