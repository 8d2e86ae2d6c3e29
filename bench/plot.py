"""`bench plot`: a run of `bench compile` as a picture, written as SVG by hand.

Left what each stage takes of the whole, right each kernel by its micro-ops and its time, both axes logarithmic, with the
lines along which a micro-op costs the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from xml.sax.saxutils import escape

from bench.report import Summary
from bench.run import Run
from bench.stages import REQUEST_STAGES

WIDTH, HEIGHT = 960, 440
TOP, BOTTOM = 72, 386
BARS_LEFT, BARS_RIGHT = 96, 350
DOTS_LEFT, DOTS_RIGHT = 530, 930
FAINT, QUIET = "#d0d7de", "#57606a"
BAR, REQUEST_BAR, DOT = "#3f72af", "#9db8d9", "#c44e52"
COSTS_US = (10, 40, 160)  # of a micro-op, drawn as lines
STYLE = "text{font:12px sans-serif;fill:#24292f}.title{font-size:14px;font-weight:bold}.small{font-size:11px;fill:#57606a}"


def svg(run: Run, found: Summary) -> str:
    """The picture of a run and its summary."""
    title = (
        f"{found['kernels']} kernels, {run.target}, optimize {run.optimize}: {found['all_ms']['total'] / 1000:.2f} s of CPU, "
        f"median {found['all_ms']['median']:.2f} ms, p99 {found['all_ms']['p99']:.1f} ms"
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img">',
        f"<title>{escape(title)}</title><style>{STYLE}</style>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        words(20, 28, title, "title"),
        *_bars(found),
        *_dots(run),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _bars(found: Summary) -> Iterator[str]:
    """A bar for each stage, in the order of the flow."""
    yield words(BARS_LEFT, TOP - 20, "CPU time by stage; light: until the key is known", "small")
    stages = found["stages"]
    pitch = (BOTTOM - TOP) / len(stages)
    longest = max(row["share"] for row in stages.values())
    for k, (stage, row) in enumerate(stages.items()):
        y = TOP + k * pitch
        width = (BARS_RIGHT - BARS_LEFT) * row["share"] / longest
        colour = REQUEST_BAR if stage in REQUEST_STAGES else BAR
        top, height, middle = y + pitch * 0.15, pitch * 0.7, y + pitch / 2 + 4
        yield f'<rect x="{BARS_LEFT}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}"/>'
        yield words(BARS_LEFT - 8, middle, stage, anchor="end")
        yield words(BARS_LEFT + width + 6, middle, f"{row['share']:.1%} · {row['total']:.{0 if row['total'] >= 10 else 1}f} ms", "small")


@dataclass(frozen=True, slots=True)
class Axis:
    """A logarithmic axis: `least` lies at `start`, `greatest` at `end`. Both are powers of ten."""

    least: float
    greatest: float
    start: float
    end: float

    @staticmethod
    def over(values: list[float], start: float, end: float) -> Axis:
        low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
        return Axis(10.0**low, 10.0 ** max(high, low + 1), start, end)

    def at(self, value: float) -> float:
        part = math.log10(value / self.least) / math.log10(self.greatest / self.least)
        return self.start + part * (self.end - self.start)

    def ticks(self) -> list[float]:
        decades = round(math.log10(self.greatest / self.least))
        return [self.least * 10.0**k for k in range(decades + 1)]


def _dots(run: Run) -> Iterator[str]:
    """A dot for each kernel."""
    kernels = [kernel for kernel in run.kernels if kernel.micro_ops and kernel.ms > 0]
    if not kernels:
        return
    x = Axis.over([float(kernel.micro_ops) for kernel in kernels], DOTS_LEFT, DOTS_RIGHT)
    y = Axis.over([kernel.ms for kernel in kernels], BOTTOM, TOP)
    yield words(DOTS_LEFT, TOP - 20, "milliseconds of each kernel by its micro-ops; dashed: µs per micro-op", "small")
    for tick in x.ticks():
        yield line(x.at(tick), TOP, x.at(tick), BOTTOM, FAINT)
        yield words(x.at(tick), BOTTOM + 18, f"{tick:g}", "small", "middle")
    for tick in y.ticks():
        yield line(DOTS_LEFT, y.at(tick), DOTS_RIGHT, y.at(tick), FAINT)
        yield words(DOTS_LEFT - 8, y.at(tick) + 4, f"{tick:g}", "small", "end")
    for cost in COSTS_US:
        low = max(x.least, y.least * 1000 / cost)
        high = min(x.greatest, y.greatest * 1000 / cost)
        if low < high:
            right, up = x.at(high), y.at(high * cost / 1000)
            yield line(x.at(low), y.at(low * cost / 1000), right, up, QUIET, dashes="4 4")
            at_top = high < x.greatest
            yield words(right, up - 4, f"{cost} µs", "small", "middle" if at_top else "end")
    for kernel in kernels:
        yield f'<circle cx="{x.at(kernel.micro_ops):.1f}" cy="{y.at(kernel.ms):.1f}" r="2.2" fill="{DOT}" fill-opacity="0.55"/>'


def words(x: float, y: float, content: str, kind: str = "", anchor: str = "start") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{named}>{escape(content)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, colour: str, dashes: str = "") -> str:
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"{dashed}/>'
