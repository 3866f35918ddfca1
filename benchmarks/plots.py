"""The pictures of a report, as SVG and PNG. Colours are those of Okabe and Ito, which colour-blind readers can tell."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.goals import BATCH, C_CODE, LIBRARIES, times
from benchmarks.peers import CANDIDATES, OURS

STYLES = {  # colour and marker: ours are filled and dark, the peers take the rest of the palette
    "symad": ("#000000", "o"),
    "symad-fast": ("#0072B2", "D"),
    "symad-tier": ("#56B4E9", "s"),
    "casadi": ("#E69F00", "^"),
    "casadi-gcc": ("#D55E00", "v"),
    "heyoka": ("#009E73", "<"),
    "heyoka-fast": ("#009E73", ">"),
    "symengine": ("#CC79A7", "P"),
    "jax": ("#8C564B", "X"),
    "numba": ("#7F7F7F", "*"),
}
Series = Mapping[str, Mapping[str, float]]  # problem: {candidate: value}


class Painter:
    """Draws into one folder; an ImportError names what is missing."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        matplotlib = importlib.import_module("matplotlib")
        matplotlib.use("Agg")
        matplotlib.rcParams.update({"svg.hashsalt": "symad", "svg.fonttype": "none", "font.size": 10})
        self.pyplot = importlib.import_module("matplotlib.pyplot")

    def save(self, figure: Any, name: str) -> str:
        """Write both formats and return the Markdown line that shows the picture."""
        for suffix, metadata in (("svg", {"Date": None}), ("png", {"Software": None})):
            figure.savefig(self.folder / f"{name}.{suffix}", dpi=110, bbox_inches="tight", metadata=metadata)
        self.pyplot.close(figure)
        return f"![{name.replace('_', ' ')}]({name}.svg)"

    def ratios(self, name: str, panels: Sequence[tuple[str, float, Series]]) -> str:
        """Draw bars of how many times faster we are, one panel for each kind of peer, with the goal as a line."""
        rows, panels = list(panels[0][2]), [panel for panel in panels if any(panel[2].values())] or panels[:1]
        size = (11, 1.9 + 0.42 * len(rows))
        figure, (axes,) = self.pyplot.subplots(
            1, len(panels), figsize=size, sharey=True, layout="constrained", squeeze=False
        )
        for axis, (title, goal, series) in zip(axes, panels, strict=True):
            for k, candidate in enumerate(OURS[:2]):
                bars(axis, [series[problem].get(candidate) for problem in rows], (k - 0.5) * 0.38, candidate)
            axis.axvline(goal, color="#D55E00", linestyle="--", linewidth=1.5, label="goal", zorder=1)
            axis.axvline(1, color="#000000", linewidth=1)
            axis.set_xscale("log")
            axis.set_title(f"{title}\n(goal: {goal:g} times)" if goal > 1 else title, size=11)
            axis.set_xlabel("times faster (log scale)")
            axis.margins(x=0.18)
            plain(axis)
        axes[0].set_yticks(range(len(rows)), rows)
        axes[0].invert_yaxis()
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=9, frameon=False)
        return self.save(figure, name)

    def dots(self, name: str, title: str, unit: str, series: Series) -> str:
        """Draw one line of marks for each problem, a mark for each candidate."""
        rows = list(series)
        figure, axis = self.pyplot.subplots(figsize=(11, 1.6 + 0.42 * len(rows)), layout="constrained")
        for candidate in CANDIDATES:
            points = [(row[candidate], k) for k, row in enumerate(series.values()) if candidate in row]
            if points:
                colour, marker = STYLES[candidate]
                size = 55 if candidate in OURS else 45
                axis.scatter(*zip(*points, strict=True), s=size, color=colour, marker=marker, zorder=3,
                             label=CANDIDATES[candidate].name, alpha=0.9)  # fmt: skip
        axis.set_xscale("log")
        axis.set_yticks(range(len(rows)), rows)
        axis.invert_yaxis()
        axis.set_xlabel(unit)
        axis.set_title(title, size=11)
        axis.grid(axis="both", color="#DDDDDD", zorder=0)
        axis.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=9)
        plain(axis)
        return self.save(figure, name)

    def lines(self, name: str, title: str, curves: Mapping[str, Mapping[int, float]], ends: Mapping[str, str]) -> str:
        """Draw seconds over nodes, both on log scales; a curve that ends early says why."""
        figure, axis = self.pyplot.subplots(figsize=(9.5, 5.5), layout="constrained")
        for candidate, curve in curves.items():
            colour, marker = STYLES[candidate]
            label = CANDIDATES[candidate].name + (f" ({ends[candidate]})" if candidate in ends else "")
            axis.plot(list(curve), list(curve.values()), color=colour, marker=marker, markersize=7, label=label)
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xlabel("nodes of the Hessian's graph")
        axis.set_ylabel("seconds, from the Python function to the first number")
        axis.set_title(title, size=11)
        axis.grid(color="#DDDDDD")
        axis.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=9)
        return self.save(figure, name)


def bars(axis: Any, values: Sequence[float | None], shift: float, candidate: str) -> None:
    """Draw bars from 1, to the left where we are slower, each with its number at the end."""
    known = [(row + shift, value) for row, value in enumerate(values) if value is not None]
    lengths = [value - 1 for _, value in known]
    places = [place for place, _ in known]
    axis.barh(places, lengths, 0.36, left=1, color=STYLES[candidate][0], label=CANDIDATES[candidate].name, zorder=2)
    for place, value in known:
        text, offset, side = times(value), (3, -3)[value < 1], ("left", "right")[value < 1]
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.4, "alpha": 0.85}
        at = {"xytext": (offset, 0), "textcoords": "offset points", "ha": side, "va": "center"}
        axis.annotate(text, (value, place), **at, size=8, bbox=box, zorder=3)


def plain(axis: Any) -> None:
    """Write the numbers of the horizontal log scale as 1, 2, 5, 10... where they span little, else as 1, 10, 100."""
    ticker = importlib.import_module("matplotlib.ticker")
    low, high = axis.get_xlim()
    steps = (1.0, 2.0, 5.0) if high / low < 2000 else (1.0,)
    axis.xaxis.set_major_locator(ticker.LogLocator(subs=steps, numticks=30))
    axis.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axis.xaxis.set_minor_formatter(ticker.NullFormatter())
    axis.tick_params(labelsize=9)


def draw(painter: Painter, data: Mapping[str, Any]) -> list[str]:
    """Draw what a run has data for, and return the Markdown lines."""
    shown = []
    calls = {**data.get("hessians", {}), **data.get("jacobians", {})}
    if calls:
        medians = {p: {row["candidate"]: row["microseconds"]["median"] for row in rows} for p, rows in calls.items()}
        libraries = [name for name in CANDIDATES if name not in (*OURS, "casadi-gcc")]
        panels = [("than the best of CasADi, heyoka, SymEngine, JAX, numba", LIBRARIES, faster(medians, libraries)),
                  ("than CasADi's C code, compiled by gcc", C_CODE, faster(medians, ["casadi-gcc"]))]  # fmt: skip
        shown.append(painter.ratios("call_ratios", panels))
        shown.append(painter.dots("calls", "One call from Python", "microseconds (log scale)", medians))
    if data.get("batch"):
        shown += _batches(painter, data["batch"])
    if found := data.get("structure"):
        panels = [("than the best peer", LIBRARIES, against(found, "peer")),
                  ("than straight lines of ours", 1.0, against(found, "never"))]  # fmt: skip
        shown.append(painter.ratios("structure_ratios", panels))
    if data.get("build"):
        curves = {
            c: {n: b["seconds"] for n, b in row.items() if not b["reason"]}
            for c, row in data["build"].items()
            if c in CANDIDATES
        }
        ends = {c: b["reason"] for c, row in data["build"].items() for b in row.values() if b["reason"]}
        title = "Build: sparse Hessian of the chained Rosenbrock function"
        shown.append(painter.lines("build", title, curves, ends))
    return shown


def _batches(painter: Painter, batch: Mapping[str, Any]) -> list[str]:
    rates = {p: {r["candidate"]: r["points"][1]["median"] / 1e6 for r in rows} for p, rows in batch.items()}
    slower = {p: {name: 1 / rate for name, rate in row.items()} for p, row in rates.items()}
    rest = [name for name in CANDIDATES if name not in (*OURS, "heyoka", "heyoka-fast", "jax")]
    panels = [("than the best of heyoka and JAX", BATCH, faster(slower, ["heyoka", "heyoka-fast", "jax"])),
              ("than the best of CasADi map, CasADi C, numba", 1.0, faster(slower, rest))]  # fmt: skip
    return [
        painter.ratios("batch_ratios", panels),
        painter.dots("batch", "Batches of 4096 points, one core", "10^6 points per second (log scale)", rates),
    ]


def against(found: Series, other: str) -> dict[str, dict[str, float]]:
    """Return how many times faster than another the default and accuracy "fast" are.

    >>> against({"p": {"auto": 2.0, "peer": 6.0}}, "peer")
    {'p': {'symad': 3.0}}
    """
    forms = {"symad": "auto", "symad-fast": "fast"}
    return {
        title: {name: row[other] / row[form] for name, form in forms.items() if form in row and other in row}
        for title, row in found.items()
    }


def faster(costs: Series, peers: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return how many times faster our forms are than the best of some peers, where one is there.

    >>> faster({"p": {"symad": 2.0, "jax": 6.0, "heyoka": 8.0}, "q": {"symad": 1.0}}, ["jax", "heyoka"])
    {'p': {'symad': 3.0}, 'q': {}}
    """
    found = {}
    for problem, row in costs.items():
        best = min((row[name] for name in peers if name in row), default=None)
        found[problem] = {} if best is None else {name: best / row[name] for name in OURS[:2] if name in row}
    return found
