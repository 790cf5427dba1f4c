"""A store in a notebook: a `Reading` whose cell shows its answer with the main figure, and every figure of its page."""

from __future__ import annotations

import difflib
import html
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from steelyard.analysis.narrative.answer_parts import parts_of
from steelyard.format import listed
from steelyard.reading.comparison import html_list
from steelyard.reading.opened import sealed_trials
from steelyard.reading.reading import Reading
from steelyard.report.data.presentation import Figure
from steelyard.report.figures import catalogue
from steelyard.report.tables.answers import answers
from steelyard.report.tables.generic import Table
from steelyard.shown_text import visible
from steelyard.store.modelled import open_store


def read(path: str | Path) -> NotebookReading:
    """A `NotebookReading` of the study's folder at `path`, or of the only one in it. Raises as `reading.read`."""
    store = open_store(Path(path))
    return NotebookReading(store, store.study, sealed_trials(store), store.look)


@dataclass(frozen=True)
class NotebookFigure:
    """A figure of the page, drawn where it is the value of a cell."""

    figure: Figure

    def _repr_html_(self) -> str:
        panels = (f"{_text('h4', panel.title)}{panel.picture.in_file()}" for panel in self.figure.panels)
        return f"{''.join(panels)}{_text('p', self.figure.caption)}"


class NotebookReading(Reading):
    """One store, read once, as a notebook shows it."""

    def _repr_html_(self) -> str:
        """The question, its answer, what limits it, and the main figure."""
        results, table, around = self.results, answers(self.results.answer_table), parts_of(self.results)
        limits = f"{_text('p', 'What limits this answer:')}{html_list(results.caveats)}" if results.caveats else ""
        main = self.figures.get("main")
        parts = (
            _text("h3", results.title), _text("p", results.question.strip()), html_list(around.lead),
            _table(table) if table else "", html_list(around.beside), limits,
            NotebookFigure(main)._repr_html_() if main else "", _text("p", repr(self)),
        )  # fmt: skip
        return "".join(parts)

    @cached_property
    def figures(self) -> Mapping[str, Figure]:
        """The figures of the page that need no time series within trials, by the names that `report --figures` has."""
        return catalogue.of_results(self.results)

    def figure(self, name: str = "main") -> NotebookFigure:
        """A figure of the page. Raises KeyError with the most similar names."""
        if name not in self.figures:
            near = difflib.get_close_matches(name, self.figures, n=3)
            known = f"did you mean {listed(near, 'or')}?" if near else f"there are {listed(list(self.figures))}"
            raise KeyError(f"no figure {name!r}: {known}")
        return NotebookFigure(self.figures[name])


def _text(tag: str, text: str) -> str:
    return f"<{tag}>{html.escape(visible(text))}</{tag}>" if text else ""


def _table(table: Table) -> str:
    heads = "".join(f"<th>{html.escape(visible(column.name))}</th>" for column in table.columns)
    rows = "".join(f"<tr>{''.join(_text('td', cell.text) or '<td></td>' for cell in row)}</tr>" for row in table.rows)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>{_text('p', table.caption)}"
