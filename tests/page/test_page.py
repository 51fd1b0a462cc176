# Copyright: (c) 2026, kafkaops.cluster contributors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report as it is seen: on a phone, on a desk, in the dark, on paper, without colours."""

import re
import time

import pytest
from flow.judge import verdict
from flow.prepare import history
from flow.present import report
from flow.present.benchmarked import benchmarked_page
from flow.present.drilled import drilled_page
from flow.present.index import index_page
from flow.watch import tell

from tests.support import reports, verdicts

PHONE, TABLET, DESK = 360, 768, 1280
EVERY = pytest.mark.parametrize("make", verdicts.ALL, ids=lambda make: make.__name__)
WIDTHS = pytest.mark.parametrize("width", (PHONE, TABLET, DESK))

# The plots that are displayed: where they stand, and where their texts do, in pixels of the window.
PLOTS = """
const box = e => { const r = e.getBoundingClientRect();
  return {left: r.left, right: r.right, top: r.top, bottom: r.bottom}; };
return [...document.querySelectorAll('figure svg')].filter(s => s.getClientRects().length)
  .map(s => ({...box(s), texts: [...s.querySelectorAll('text')].map(t => ({...box(t),
    said: t.textContent,
    size: parseFloat(getComputedStyle(t).fontSize) * s.getBoundingClientRect().width
      / s.viewBox.baseVal.width}))}));
"""

# Every element that shows text of its own: its size, its colour and what lies behind it.
TEXTS = """
const ground = e => { for (; e; e = e.parentElement) {
  const colour = getComputedStyle(e).backgroundColor;
  if (!/, 0\\)$/.test(colour)) return colour; } return 'rgb(255, 255, 255)'; };
return [...document.body.querySelectorAll('*')].filter(e => e.getClientRects().length
    && !e.closest('defs')
    && [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()))
  .map(e => { const style = getComputedStyle(e); const svg = e.closest('svg');
    return {said: e.textContent.slice(0, 40), size: svg ? 99 : parseFloat(style.fontSize),
      colour: svg ? style.fill : style.color, ground: ground(e)}; });
"""


def colour(text):
    return [int(n) for n in re.findall(r"\d+", text)[:3]]


def contrast(one, other):
    """Contrast of two colours, 1 to 21, as WCAG defines it."""

    def luminance(rgb):
        parts = [c / 255 for c in rgb]
        parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    bright, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def overlap(one, other):
    across = min(one["right"], other["right"]) - max(one["left"], other["left"])
    down = min(one["bottom"], other["bottom"]) - max(one["top"], other["top"])
    # boxes of lines are higher than letters, so a touch is none
    return across > 1 and down > 4


@EVERY
@WIDTHS
def test_nothing_stands_out_to_the_side(browser, make, width):
    browser.show(report.page(make()), width)
    assert browser.ask("document.documentElement.scrollWidth") <= width
    for plot in browser.ask(PLOTS):
        assert 0 <= plot["left"] and plot["right"] <= width
        assert plot["right"] - plot["left"] > width * 0.6


@EVERY
@WIDTHS
def test_every_word_of_a_plot_can_be_read(browser, make, width):
    browser.show(report.page(make()), width)
    for plot in browser.ask(PLOTS):
        for text in plot["texts"]:
            assert text["size"] >= 11, text
            assert plot["left"] - 1 <= text["left"] and text["right"] <= plot["right"] + 1, text
            assert plot["top"] - 1 <= text["top"] and text["bottom"] <= plot["bottom"] + 3, text
        pairs = [(a, b) for i, a in enumerate(plot["texts"]) for b in plot["texts"][:i]]
        assert not [(a["said"], b["said"]) for a, b in pairs if overlap(a, b)]


@pytest.mark.parametrize("width,height", [(PHONE, 640), (DESK, 720)])
@pytest.mark.parametrize("make", [verdicts.passing, verdicts.failing, verdicts.inconclusive])
def test_the_verdict_is_seen_at_a_glance(browser, make, width, height):
    document = make()
    browser.show(report.page(document), width, height)
    word = browser.ask(
        "const e = document.querySelector('.verdict strong'), r = e.getBoundingClientRect();"
        "return {said: e.innerText, bottom: r.bottom, size: parseFloat(getComputedStyle(e).fontSize)}"
    )
    assert word["said"] == document["verdict"].upper()
    assert word["bottom"] < height / 3 and word["size"] >= 24
    counts = browser.ask(
        "[...document.querySelectorAll('.facts div')].slice(0, 4).map(e => [e.innerText,"
        " e.getBoundingClientRect().bottom])"
    )
    assert [said.split("\n")[1].replace(",", "") for said, dummy in counts] == [
        str(document["counts"][n]) for n in ("acked", "read", "unknown", "failed")
    ]
    assert all(bottom < height for dummy, bottom in counts)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", (PHONE, DESK))
@pytest.mark.parametrize("make", [verdicts.passing, verdicts.failing, verdicts.inconclusive])
def test_text_is_large_and_clear_enough(browser, make, width, scheme):
    browser.show(report.page(make()), width, scheme=scheme)
    ground = contrast(
        colour(browser.ask("getComputedStyle(document.body).backgroundColor")), [0] * 3
    )
    assert ground > 15 if scheme == "light" else ground < 2
    texts = browser.ask(TEXTS)
    assert len(texts) > 50
    for text in texts:
        assert text["size"] >= 13, text
        assert contrast(colour(text["colour"]), colour(text["ground"])) >= 4.5, text


def test_what_is_drawn_stands_where_it_belongs(browser):
    document = verdicts.failing()
    timing = document["timing"]
    pause, series = timing["longest_pause"], timing["series"]
    length = len(series["records"]) * timing["bucket_ms"]
    for width in (PHONE, DESK):
        browser.show(report.page(document), width)
        area, left, right = browser.ask(
            "const svg = [...document.querySelectorAll('svg')].find(s => s.querySelector('.area')"
            " && s.getClientRects().length);"
            "const box = e => e.getBoundingClientRect(), a = box(svg.querySelector('.area')),"
            " p = box(svg.querySelector('.pause')); return [a.width, p.left - a.left, p.right - a.left]"
        )
        assert left / area == pytest.approx(
            (pause["from_ms"] - series["start_ms"]) / length, abs=0.01
        )
        assert right / area == pytest.approx(
            (pause["to_ms"] - series["start_ms"]) / length, abs=0.01
        )
        latency = (
            "[...[...document.querySelectorAll('h2')].find(e => e.innerText == 'Latency')"
            ".nextElementSibling"
        )
        marks = browser.ask(
            f"{latency}.querySelectorAll('.mark')].filter(m => m.getClientRects().length)"
            ".map(m => m.getBoundingClientRect().left)"
        )
        assert len(marks) == 4 and marks == sorted(marks)
        heights = browser.ask(
            f"{latency}.querySelectorAll('.bar')].filter(m => m.getClientRects().length)"
            ".map(m => m.getBoundingClientRect().height)"
        )
        counts = [c["records"] for c in timing["latency"]["classes"]]
        ranks = [sorted(range(len(v)), key=lambda n: (v[n], n)) for v in (heights, counts)]
        assert ranks[0][-1] == ranks[1][-1] and len(heights) == len(counts)
        assert min(heights) > 5  # a single late record is seen, too


@pytest.mark.parametrize("width", (PHONE, DESK))
def test_changes_of_leaders_stand_on_the_timeline_where_they_were(browser, width):
    document = verdicts.failing()
    series, bucket_ms = document["timing"]["series"], document["timing"]["bucket_ms"]
    browser.show(report.page(document), width)
    area, ticks = browser.ask(
        "const svg = [...document.querySelectorAll('svg')].find(s => s.querySelector('.change')"
        " && s.getClientRects().length);"
        "const box = e => e.getBoundingClientRect(), a = box(svg.querySelector('.area'));"
        "return [a.width, [...svg.querySelectorAll('.change')].map(e => [box(e).left - a.left,"
        " box(e).bottom - a.bottom])]"
    )
    moments = sorted({each["at_ms"] for each in document["leadership"]["changes"]})
    whole = len(series["records"]) * bucket_ms
    for (left, below), moment in zip(ticks, moments):
        assert left / area == pytest.approx((moment - series["start_ms"]) / whole, abs=0.02)
        assert abs(below) <= 2
    assert len(ticks) == len(moments) == 3


@pytest.mark.parametrize("width,height", [(PHONE, 640), (DESK, 720)])
def test_what_now_is_read_before_the_checks(browser, width, height):
    document = verdicts.failing()
    browser.show(report.page(document), width, height)
    said, places = browser.ask(
        "const all = [...document.querySelectorAll('h2')];"
        "const now = all.find(e => e.innerText == 'What now');"
        "return [[...now.nextElementSibling.children].map(e => e.innerText),"
        " [now, all.find(e => e.innerText == 'Checks')].map(e => e.getBoundingClientRect().top)]"
    )
    assert said == document["what_now"] and places[0] < places[1]
    assert places[0] < 1.5 * height, "on a phone not far below, too"


def test_nothing_is_told_by_colour_alone(browser):
    browser.show(report.page(verdicts.failing()), DESK)
    signs = browser.ask("[...document.querySelectorAll('.checks li')].map(e => e.innerText)")
    assert [s.split()[0] for s in signs] == [
        "✕" if each in ("loss", "gap") else "✓" for each in verdict.MEANING
    ]
    dashes = browser.ask(
        "[...document.querySelectorAll('.wide .mark')].map(m => getComputedStyle(m).strokeDasharray)"
    )
    assert len(set(dashes)) == 4
    dash = browser.ask("getComputedStyle(document.querySelector('.wide .acks')).strokeDasharray")
    assert dash not in ("none", ""), "acknowledgements are told from records by their dashes"
    fill = browser.ask("getComputedStyle(document.querySelector('.wide .pause')).fill")
    assert "#hatch" in fill


def test_text_from_outside_is_shown_and_not_run(browser):
    browser.show(report.page(verdicts.hostile()), DESK)
    assert browser.ask("document.body.innerText").count("<script>alert('x')</script>") > 20
    assert browser.ask("document.scripts.length") == 0


def test_nothing_is_loaded(browser):
    browser.show(report.page(verdicts.passing()), DESK)
    assert browser.ask("performance.getEntriesByType('resource').length") == 0


@EVERY
def test_paper_gets_the_wide_plots_and_no_dark(browser, make):
    browser.show(report.page(make()), 703, 1020, scheme="dark", media="print")
    assert browser.ask("document.documentElement.scrollWidth") <= 703
    assert browser.ask("getComputedStyle(document.body).color") == "rgb(27, 31, 36)"
    shown = (
        "[...document.querySelectorAll('figure .%s')].filter(e => e.getClientRects().length).length"
    )
    assert not browser.ask(shown % "narrow")
    assert browser.ask(shown % "wide") == browser.ask("document.querySelectorAll('figure').length")
    for plot in browser.ask(PLOTS):
        assert all(text["size"] >= 9.5 for text in plot["texts"])  # 7 points
    pages = len(re.findall(rb"/Type\s*/Page\b", browser.pdf()))
    assert 1 < pages <= (6 if make in (verdicts.passing, verdicts.failing) else 10)


@pytest.fixture
def index(tmp_path):
    """The page that lists runs."""
    reports.kept_reports(tmp_path)
    return index_page("local", history.runs_below(str(tmp_path)))


def of_guarantees():
    """The page of one run of guarantees."""
    return drilled_page("Guarantees", "NOT as expected", "2 of 4", reports.guarantees())


def of_clients():
    """The page of drills that touch no broker."""
    return drilled_page("Drills", "NOT as expected", "2 of 3", reports.clients())


def of_rows(page, index):
    """The page of this name."""
    told = ("Benchmark", "NOT as expected", "1 of 3", reports.benchmark())
    pages = {"index": lambda: index, "guarantees": of_guarantees, "clients": of_clients}
    return pages.get(page, lambda: benchmarked_page(*told))()


@WIDTHS
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("page", ["index", "guarantees", "benchmark", "clients"])
def test_the_list_of_runs_and_a_page_of_rows_are_read_everywhere(
    browser, index, page, width, scheme
):
    browser.show(of_rows(page, index), width, scheme=scheme)
    assert browser.ask("document.documentElement.scrollWidth") <= width
    texts = browser.ask(TEXTS)
    assert len(texts) > 50
    for text in texts:
        assert text["size"] >= 13, text
        assert contrast(colour(text["colour"]), colour(text["ground"])) >= 4.5, text


@WIDTHS
def test_a_page_of_rows_shows_where_in_its_plots_the_fault_was(browser, width):
    browser.show(of_guarantees(), width)
    plots = browser.ask(PLOTS)
    assert len(plots) == 3
    for plot in plots:
        assert 0 <= plot["left"] and plot["right"] <= width
        # the band of the fault carries its number
        assert "1" in [text["said"] for text in plot["texts"]]
        assert all(text["size"] >= 11 for text in plot["texts"])


@WIDTHS
def test_a_backlog_says_by_numbers_how_many_consumers_there_were(browser, width):
    browser.show(of_clients(), width)
    plots = browser.ask(PLOTS)
    # of the third row, whose samples are of one moment, there is none
    assert len(plots) == 5
    queue, grown = plots[1], plots[3]
    bands = browser.ask(
        "[...document.querySelectorAll('figure svg')].filter(s => s.getClientRects().length)"
        ".map(s => s.querySelectorAll('.event').length)"
    )
    assert bands == [0, 4, 1, 1, 1]
    edges = browser.ask(
        "[...document.querySelectorAll('figure svg')].filter(s => s.getClientRects().length)"
        ".map(s => [...s.querySelectorAll('.area ~ .edge')].length)"
    )
    assert edges == [2 * each for each in bands], "seen above a load that is steady"
    for plot, numbers in ((queue, {"1", "2", "3", "4"}), (grown, {"1"})):
        assert numbers <= {text["said"] for text in plot["texts"]}, "without colours, too"
        assert "waiting" in {text["said"] for text in plot["texts"]}
        assert all(text["size"] >= 11 for text in plot["texts"])
        for text in plot["texts"]:
            assert plot["left"] - 1 <= text["left"] and text["right"] <= plot["right"] + 1, text
        pairs = [(a, b) for i, a in enumerate(plot["texts"]) for b in plot["texts"][:i]]
        assert not [(a["said"], b["said"]) for a, b in pairs if overlap(a, b)]
    said = browser.ask("document.body.innerText")
    for text in (
        "1: 1 consumer; 2: 2 consumers",
        "1: partitions doubled",
        "Records that were copied",
    ):
        assert text in said


def test_paper_gets_the_backlog_too(browser):
    browser.show(of_clients(), 703, 1020, scheme="dark", media="print")
    assert browser.ask("document.documentElement.scrollWidth") <= 703
    plots = browser.ask(PLOTS)
    assert len(plots) == 5
    assert all(text["size"] >= 9.5 for plot in plots for text in plot["texts"])
    assert 1 < len(re.findall(rb"/Type\s*/Page\b", browser.pdf())) <= 8


@pytest.mark.parametrize("width", (PHONE, DESK))
def test_each_run_of_the_list_says_its_verdict_in_words_and_leads_to_its_page(
    browser, index, width
):
    browser.show(index, width)
    rows = browser.ask(
        "return [...document.querySelectorAll('table')].slice(-1)[0].querySelectorAll('tbody tr').length"
        " && [...[...document.querySelectorAll('table')].slice(-1)[0].querySelectorAll('tbody tr')]"
        ".map(r => [r.innerText, r.querySelector('a') && r.querySelector('a').getAttribute('href')])"
    )
    assert len(rows) == 8
    words = "pass|fail|as expected|NOT as expected|interrupted|not readable"
    assert all(re.search(rf"[✓✕?] ({words})", said) for said, _link in rows)
    assert [link for said, link in rows if "not readable" not in said].count(None) == 0
    assert "9 s" in next(said for said, _link in rows if "NOT as expected" in said)


@pytest.mark.parametrize(
    "age, word, told",
    [
        (30, "PASS", "none lost"),
        (
            20 * 60,
            "OLD",
            "of 20 minutes ago: unless a reload changes that, its process does not run",
        ),
        (3 * 86400, "OLD", "of 3 days ago"),
    ],
)
def test_the_page_of_a_watch_that_nobody_writes_any_more_says_that_it_is_old(
    browser, age, word, told
):
    """It cannot be replaced by a process that is gone, and a PASS of three days ago is none of today."""
    latency = {"acknowledgement": None, "append": None}
    page = tell.page(
        {
            "topic": "kafkaops-watch",
            "cluster_id": "c",
            "within_seconds": 60,
            "alarms": {},
            "since": time.time() - 10**6,
            "updated": time.time() - age,
            "ended": None,
            "old_after_seconds": 300,
            "latency": latency,
            "course": [],
            "counts": {"acknowledged": 5, "pending": 1, "arrived": 4, "lost": 0},
            "state": {"rows": 12, "bytes": 2**20},
            "batch": {"number": 3, "duration_ms": 700},
            "witnesses": {"lost": [], "duplicate": []},
        }
    )
    browser.show(page, PHONE)
    seen = browser.ask("document.querySelector('.verdict').innerText")
    assert word in seen and told in seen and "none lost" in seen
    assert browser.ask("document.title").startswith(word)
    assert browser.ask("document.documentElement.scrollWidth") <= PHONE
