# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, kafkaops.cluster contributors
"""The report's plots as inline SVG. Pure: numbers in, text out; colours and fonts are the page's.

Every plot is drawn for a width in CSS pixels, and the page shows the drawing that fits: a picture
that is only scaled down to a phone cannot be read there. Nothing is told by colour alone: kinds of
lines differ in their dashes, pauses are hatched, and all of them carry a label.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import Callable, Iterable, Optional, Sequence

LETTER, BOLD = 8.3, 9.0  # widths of a letter at the page's 13 px, on the safe side
LANES = 40  # partitions that are drawn

_HEAD = 22  # height of one row of labels above a plot


@dataclass(frozen=True)
class Frame:
    """The drawing and the rectangle inside its axes, pixels from the top left corner."""

    width: float
    height: float
    left: float
    top: float
    right: float
    bottom: float


def linear(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    """The function that puts `low` to `start` and `high` to `end`; the middle if there is no range."""
    if high <= low:
        return lambda _value: (start + end) / 2
    return lambda value: start + (value - low) / (high - low) * (end - start)


def logarithmic(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    """As `linear`, by the logarithm; both ends must be above 0."""
    straight = linear(math.log10(low), math.log10(high), start, end)
    return lambda value: straight(math.log10(value))


def nice_step(most: float, ticks: int) -> float:
    """The least step of 1, 2 or 5 times a power of ten that needs at most `ticks` up to `most`."""
    if most <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(most / ticks))
    return next(f * power for f in (1, 2, 5, 10, 20) if f * power * ticks >= most * (1 - 1e-9))


def steps(most: float, ticks: int) -> list:
    """0 and the multiples of `nice_step` up to the first that is not below `most`."""
    step = nice_step(most, ticks)
    count = max(1, math.ceil(most / step - 1e-9))
    return [round(step * n, 10) for n in range(count + 1)]


def decades(low: float, high: float) -> list:
    """The powers of ten from `low` to `high`, both included; `low` above 0."""
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    return [float(10**n) if n >= 0 else 1 / 10**-n for n in range(first, last + 1)]


def short(number: float) -> str:
    """1234567 -> 1.2M; for axes, where every letter counts."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= limit:
            return f"{number / limit:.3g}{unit}"
    return f"{number:.3g}"


def span(milliseconds: Optional[float]) -> str:
    """A length of time for people: three digits and a unit."""
    if milliseconds is None:
        return "–"
    if milliseconds < 1:
        return "< 1 ms"
    if milliseconds < 999.5:
        return f"{milliseconds:.3g} ms"
    if milliseconds < 119_500:
        return f"{milliseconds / 1000:.3g} s"
    minutes, seconds = divmod(round(milliseconds / 1000), 60)
    return f"{minutes} min {seconds} s"


def latency(measured: dict, width: int, until: str = "appended") -> str:
    """The distribution of latencies: `measured` is `timing.latency` of the verdict, or its
    `acknowledgement_latency`, not None; `until`: what they end with.

    Both axes are logarithmic: one late record among millions must be seen.
    """
    classes = [c for c in measured["classes"] if c["from_ms"] is not None]
    lowest = 0.5  # where the class below Kafka's resolution of 1 ms begins on paper
    edges = [(c["from_ms"] or lowest, c["to_ms"], c["records"]) for c in classes]
    low = min((e[0] for e in edges), default=1.0)
    high = max((e[1] for e in edges), default=10.0)
    if high / low < 10:  # a decade at least, so that the axis has ticks
        low = max(lowest, 10 ** math.floor(math.log10(low)))
        high = max(high, low * 10)
    unit = "records" if measured["sampled_every"] == 1 else "records of the sample"
    marks = [("p50", measured["p50_ms"]), ("p99", measured["p99_ms"]),
             ("p99.9", measured["p99_9_ms"]), ("max", measured["max_ms"])]  # fmt: skip
    head = _HEAD * (len(marks) + 1)  # a row for each label, and one for the title of the axis
    frame = Frame(width, 250 + head, 44, head, width - 12, 206 + head)
    across = logarithmic(low, high, frame.left, frame.right)
    most = max([e[2] for e in edges], default=1)
    top = 10 ** max(1, math.ceil(math.log10(most) - 1e-9))
    up = logarithmic(0.6, top, frame.bottom, frame.top)  # below 1, so that one record has a bar
    y_ticks = [(up(t), short(t)) for t in decades(1, top)]
    x_values = decades(low, high)
    if across(10 * low) - across(low) > 180:  # room for more than whole decades
        x_values = sorted(t * f for t in decades(low / 10, high) for f in (1, 2, 5))
    x_ticks = [(across(t), span(t)) for t in x_values if max(low, 1) <= t <= high]
    if low < 1:  # instead of 1, beside which it would stand
        x_ticks[:1] = [(across(math.sqrt(lowest)), "< 1 ms")]
    shapes = [
        _rect(
            across(a) + 0.5, up(n), max(across(b) - across(a) - 1, 1), frame.bottom - up(n), "bar"
        )
        for a, b, n in edges
    ]
    # below 1 ms: at the end of that class
    places = [(across(min(max(value, low, 1), high)), f"{n} {span(value)}") for n, value in marks]
    # All labels on one side of their lines, in steps, so that none crosses another one's line.
    on_the_right = all(x + 6 + BOLD * len(said) < width for x, said in places)
    labels = []
    for number, (x, said) in enumerate(places):
        to_the_right = on_the_right or x - 6 - BOLD * len(said) < 0
        row = number if on_the_right else len(places) - 1 - number
        y = frame.top - _HEAD * (len(places) + 0.5 - row) + 6
        shapes += [_line(x, y, x, frame.bottom, kind) for kind in ("halo", f"mark m{number}")]
        side = (x + 6, "") if to_the_right else (x - 6, "end")
        labels.append(_text(side[0], y, said, side[1], "over label"))
    lines, titles = _axes(frame, x_ticks, y_ticks, f"until {until}", unit)
    said = ", ".join(f"{name} {span(value)}" for name, value in marks)
    return _svg(frame, f"Distribution of latencies: {said}", [*lines, *shapes, *titles, *labels])


def rate(
    series: dict,
    bucket_ms: int,
    pause: Optional[dict],
    acknowledged: Optional[dict],
    width: int,
    events: Sequence[dict] = (),
    changes_ms: Sequence[int] = (),
) -> str:
    """Records a second over time: `series` is `timing.series` of the verdict, with records.

    `pause`: the longest one (from_ms, to_ms, ms), or None; `acknowledged`: that of the verdict;
    `events`: those of the verdict, drawn as bands that carry their numbers, from 1; `changes_ms`: when
    leaders or in-sync replicas changed, drawn as ticks at the foot.
    """
    start, counts = series["start_ms"], series["records"]
    head = _HEAD * (2 if events else 1)
    frame = Frame(width, 250 + head, 52, head + 6, width - 14, 206 + head)
    length = len(counts) * bucket_ms
    rates = [count * 1000 / bucket_ms for count in counts]
    acks, acks_start, acks_ms = [], 0, 1
    if acknowledged:
        acks_ms, acks_start = acknowledged["bucket_ms"], acknowledged["start_ms"] - start
        acks = [count * 1000 / acks_ms for count in acknowledged["records"]]
    # acknowledgements follow the records, and are drawn to the last one
    whole = max(length, acks_start + len(acks) * acks_ms)
    across = linear(0, whole, frame.left, frame.right)
    y_values = steps(max(rates + acks), 5)
    up = linear(0, y_values[-1], frame.bottom, frame.top)

    def stairs(values: Sequence, begin: float, step: float) -> str:
        begin = max(begin, 0)  # a producer's clock may be behind
        drawn = [f"M{across(begin):.1f} {frame.bottom:.1f}"]
        for number, value in enumerate(values):
            drawn.append(f"V{up(value):.1f}H{across(begin + (number + 1) * step):.1f}")
        return "".join([*drawn, f"V{frame.bottom:.1f}"])

    bands, labels = _bands(frame, events, start, whole, across)
    shapes = [*bands, f"<path class='area' d='{stairs(rates, 0, bucket_ms)}'/>"]
    if acks:
        shapes.append(f"<path class='acks' d='{stairs(acks, acks_start, acks_ms)}'/>")
    if pause:
        left, right = across(pause["from_ms"] - start), across(pause["to_ms"] - start)
        shapes.append(
            _rect(left, frame.top, max(right - left, 2), frame.bottom - frame.top, "pause")
        )
        said = f"no record for {span(pause['ms'])}"
        middle = (left + right) / 2
        half = BOLD * len(said) / 2
        # beside the title of the axis
        middle = min(max(middle, half + LETTER * 10), width - half)
        row = frame.top - 8 - (_HEAD if events else 0)
        labels.append(_text(middle, row, said, "middle", "over label"))
    for moment in sorted({each - start for each in changes_ms if 0 <= each - start <= whole}):
        foot = (across(moment), frame.bottom - 14, across(moment), frame.bottom)
        shapes += [_line(*foot, "halo"), _line(*foot, "change")]
    x_ticks = _time_ticks(across, whole, width)
    y_ticks = [(up(v), short(v)) for v in y_values]
    lines, titles = _axes(frame, x_ticks[0], y_ticks, x_ticks[1], "records/s")
    said = f"Records a second over {span(length)}, at most {short(max(rates))}"
    return _svg(frame, said, [*lines, *shapes, *titles, *labels])


def course(points: Sequence[tuple], width: int, unit: str) -> str:
    """Values over time: `points` are (seconds, value), at least two, in the order of time."""
    frame = Frame(width, 190, 52, 28, width - 14, 146)
    begin, most = points[0][0], max(value for _at, value in points)
    whole = (points[-1][0] - begin) * 1000
    across = linear(0, whole, frame.left, frame.right)
    y_values = steps(most, 4)
    up = linear(0, y_values[-1], frame.bottom, frame.top)
    places = [(across((at - begin) * 1000), up(value)) for at, value in points]
    drawn = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    feet = (f"M{places[0][0]:.1f} {frame.bottom:.1f}L", f"L{places[-1][0]:.1f} {frame.bottom:.1f}")
    x_ticks, title = _time_ticks(across, whole, width)
    title = f"{title.partition(' ')[0]} since the first batch here"
    lines, titles = _axes(frame, x_ticks, [(up(v), short(v)) for v in y_values], title, unit)
    said = f"{unit} over {span(whole)}, at most {short(most)}"
    return _svg(
        frame, said, [*lines, f"<path class='area' d='{feet[0]}{drawn}{feet[1]}'/>", *titles]
    )


def backlog(samples: Sequence[tuple], width: int, events: Sequence[dict] = ()) -> str:
    """Records that wait, over time: `samples` are (ms since 1970, waiting, ...), at least two, in the order of time.

    `events` are drawn as bands that carry their numbers, from 1.
    """
    head = _HEAD * (2 if events else 1)
    frame = Frame(width, 190 + head, 52, head + 6, width - 14, 146 + head)
    begin, whole = samples[0][0], samples[-1][0] - samples[0][0]
    across = linear(0, whole, frame.left, frame.right)
    y_values = steps(max(each[1] for each in samples), 4)
    up = linear(0, y_values[-1], frame.bottom, frame.top)
    drawn = "L".join(f"{across(each[0] - begin):.1f} {up(each[1]):.1f}" for each in samples)
    foot = f"{frame.bottom:.1f}"
    area = f"M{frame.left:.1f} {foot}L{drawn}L{frame.right:.1f} {foot}"
    bands, labels = _bands(frame, events, begin, whole, across)
    x_ticks, title = _time_ticks(across, whole, width)
    title = f"{title.partition(' ')[0]} since the first look"
    y_ticks = [(up(value), short(value)) for value in y_values]
    lines, titles = _axes(frame, x_ticks, y_ticks, title, "waiting")
    most = max(each[1] for each in samples)
    said = f"Records that wait over {span(whole)}, at most {short(most)}, {short(samples[-1][1])} at the end"
    parts = [*lines, *bands, f"<path class='area' d='{area}'/>", *titles, *labels]
    return _svg(frame, said, parts)


def _bands(frame: Frame, events: Sequence[dict], start: int, whole: float, across) -> tuple:
    """(shapes, labels) of events, milliseconds since 1970; what lies outside the plot is left out."""
    shapes, labels = [], []
    for number, event in enumerate(events, 1):
        begin, end = event["from_ms"] - start, event["to_ms"] - start
        if end < 0 or begin > whole:
            continue
        left, right = across(max(begin, 0)), across(min(end, whole))
        band = (left, frame.top, max(right - left, 2), frame.bottom - frame.top)
        shapes.append(_rect(*band, "event"))
        # above what is drawn over the band, which would hide it where the load is steady
        for side in (left, max(right, left + 2)):
            labels.append(_line(side, frame.top, side, frame.bottom, "edge"))
        labels.append(_text((left + right) / 2, frame.top - 8, str(number), "middle", "over label"))
    return shapes, labels


def lanes(partitions: Sequence[dict], width: int) -> str:
    """One line a partition from its first record to its last, the pauses in it hatched.

    `partitions`: `timing.partitions` of the verdict, not empty; each may have a `label`. At most
    LANES of them, by the caller's choice.
    """
    row = 20
    names = [str(p.get("label", p["partition"])) for p in partitions]
    left = min(max(len(n) for n in names) * LETTER + 10, width / 3)
    frame = Frame(width, row * len(partitions) + 44, left, 2, width - 14, row * len(partitions) + 2)
    start = min(p["first_ms"] for p in partitions)
    length = max(p["last_ms"] for p in partitions) - start
    across = linear(0, max(length, 1), frame.left, frame.right)
    shapes, labels = [], []
    for number, (name, lane) in enumerate(zip(names, partitions)):
        y = frame.top + row * number + 5
        first, last = across(lane["first_ms"] - start), across(lane["last_ms"] - start)
        labels.append(_text(frame.left - 8, y + 9.5, name, "end"))
        shapes.append(_rect(first, y, max(last - first, 2), row - 10, "lane"))
        for pause in lane["pauses"]:
            left, right = across(pause["from_ms"] - start), across(pause["to_ms"] - start)
            # an opaque ground first, so that the hatching is not drawn over the lane's colour
            for kind in ("ground", "pause"):
                shapes.append(_rect(left, y - 2, max(right - left, 2), row - 6, kind))
    x_ticks = _time_ticks(across, length, width)
    lines, titles = _axes(frame, x_ticks[0], [], x_ticks[1], "")
    said = f"When {len(partitions)} partitions got records, and their pauses"
    return _svg(frame, said, [*lines, *shapes, *titles, *labels])


def hatching() -> str:
    """The pattern of pauses; once a page, before the plots that refer to it."""
    return (
        "<svg width='0' height='0' aria-hidden='true' style='position:absolute'><defs>"
        "<pattern id='hatch' width='6' height='6' patternUnits='userSpaceOnUse'"
        " patternTransform='rotate(45)'><rect width='2' height='6' class='hatch'/></pattern>"
        "</defs></svg>"
    )


def _time_ticks(across, length_ms: float, width: int) -> tuple:
    """([(x, label)], title) of an axis of time from 0; ticks beyond the end are left out."""
    unit, divisor = ("s", 1000) if length_ms < 300_000 else ("min", 60_000)
    if length_ms < 1000:
        unit, divisor = "ms", 1
    most = length_ms / divisor
    values = [v for v in steps(most, max(3, width // 110)) if v <= most * (1 + 1e-9)]
    return [(across(v * divisor), f"{v:g}") for v in values], f"{unit} since the first record"


def _axes(frame: Frame, x_ticks: Iterable, y_ticks: Iterable, x_title: str, y_title: str) -> tuple:
    """(lines, texts): the lines lie below what is drawn, the texts above."""
    lines, texts = [], []
    for y, label in y_ticks:
        lines.append(_line(frame.left, y, frame.right, y, "grid"))
        texts.append(_text(frame.left - 6, y + 4.5, label, "end"))
    for x, label in x_ticks:
        lines.append(_line(x, frame.bottom, x, frame.bottom + 5, "axis"))
        # the first and last may not stand out of the drawing
        half = LETTER * len(label) / 2
        x = min(max(x, half), frame.width - half)
        texts.append(_text(x, frame.bottom + 18, label, "middle"))
    lines.append(_line(frame.left, frame.bottom, frame.right, frame.bottom, "axis"))
    texts.append(_text(frame.right, frame.height - 4, x_title, "end", "over"))
    if y_title:
        texts.append(_text(0, frame.top - 10, y_title, "", "over"))
    return lines, texts


def _svg(frame: Frame, description: str, parts: Iterable[str]) -> str:
    return (
        f"<svg viewBox='0 0 {frame.width:g} {frame.height:g}' role='img'"
        f" aria-label='{escape(description)}'>{''.join(parts)}</svg>"
    )


def _rect(x: float, y: float, width: float, height: float, kind: str) -> str:
    return (
        f"<rect class='{kind}' x='{x:.1f}' y='{y:.1f}' width='{width:.1f}' height='{height:.1f}'/>"
    )


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f"<line class='{kind}' x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}'/>"


def _text(x: float, y: float, said: str, anchor: str = "", kind: str = "") -> str:
    attributes = f" text-anchor='{anchor}'" if anchor else ""
    attributes += f" class='{kind}'" if kind else ""
    return f"<text x='{x:.1f}' y='{y:.1f}'{attributes}>{escape(said)}</text>"
