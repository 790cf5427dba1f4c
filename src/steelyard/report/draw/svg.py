"""SVG elements as values, and their serialisation for the page or for a file.

Drawing code names the light theme's colours. Serialisation for the page replaces them by CSS variables, so that one
picture serves both themes; a file needs no style sheet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from html import escape
from typing import Final

from steelyard.report.basics.hover_text import HoverTexts
from steelyard.report.basics.theme import FONT, VARIABLES
from steelyard.report.draw.scales import Domain
from steelyard.shown_text import visible

Attribute = Callable[[str, str], str]
"""Function from an attribute's name and value to its text, with a leading space."""

TEXT_PX: Final = 11
MARGIN_PX: Final = 8
"""White margin around a picture in a file; the page has its own."""
PAPER_WHITE: Final = "white"
TIP: Final = "data-tip"
_COLOURED: Final = ("fill", "stroke")
_FOR_THE_PAGE: Final = "data-"
"""Attributes that only the page's script reads."""
_WIDTHS: Final = (("iljI.,:;'|!", 0.25), ("frt()[]- /", 0.32), ("mwMW%@→", 0.86), ("ABCDEFGHKNOPQRSUVXYZ_", 0.69))
_WIDTH: Final = 0.56
"""Width of other letters, in shares of the text size. Widths are those of Helvetica, in four classes and the rest."""


@dataclass(frozen=True)
class Element:
    """One SVG element: tag, attributes as text, children."""

    tag: str
    attributes: tuple[tuple[str, str], ...]
    children: tuple[Element | str, ...] = ()


def element(tag: str, *children: Element | str, **attributes: str | float | None) -> Element:
    """An element; `_` in a name becomes `-`, numbers are rounded, and None leaves an attribute out."""
    pairs = tuple(
        (name.replace("_", "-"), value if isinstance(value, str) else short(value))
        for name, value in attributes.items()
        if value is not None
    )
    return Element(tag, pairs, children)


def group(children: Iterable[Element | None], **attributes: str | float | None) -> Element:
    """A group of elements that share attributes; None is left out."""
    return element("g", *(child for child in children if child is not None), **attributes)


def text(
    x: float, y: float, words: str, *, anchor: str | None = None, fill: str | None = None, **more: str | float | None
) -> Element:
    """One line of text, its baseline at `y`."""
    return element("text", words, x=place(x), y=place(y), text_anchor=anchor, fill=fill, **more)


def short(value: float) -> str:
    """A number as an attribute's text, to two decimals."""
    return f"{round(value, 2):.6g}"


def place(value: float) -> str:
    """A coordinate: a tenth of a pixel is enough."""
    written = f"{value:.1f}".removesuffix(".0")
    return "0" if written == "-0" else written


def text_px(words: str, size: float = TEXT_PX) -> float:
    """Approximate width of a text in pixels."""
    return size * sum(next((width for letters, width in _WIDTHS if one in letters), _WIDTH) for one in words)


def fitted(words: str, room_px: float, size: float = TEXT_PX) -> str:
    """A text cut to a width, with an ellipsis if it is cut."""
    if text_px(words, size) <= room_px:
        return words
    while words and text_px(words + "…", size) > room_px:
        words = words[:-1]
    return words.rstrip() + "…"


@dataclass(frozen=True)
class Picture:
    """A whole drawing."""

    width: float
    height: float
    elements: tuple[Element, ...]
    y_domains: tuple[Domain, ...] = ()
    """Domains of the y axes; a check reads where they begin."""

    def in_page(self, texts: HoverTexts, *, title: str, identity: str) -> str:
        """The picture as a part of the page: colours are CSS variables, hover texts are numbers of `texts`.

        `title` is for screen readers; `identity` is an id that is unique in the page.
        """
        named = element("title", title, id=identity)
        root = element(
            "svg", named, *self.elements, **{"class": "chart"}, width=self.width, height=self.height,
            viewBox=f"0 0 {short(self.width)} {short(self.height)}", role="img", aria_labelledby=identity,
            font_size=f"{TEXT_PX}px", fill="none",
        )  # fmt: skip
        return _written(root, _for_page(texts))

    def beside_words(self) -> str:
        """The picture inline in a line of text, hidden from screen readers because the text says what it shows."""
        root = element(
            "svg", *self.elements, width=self.width, height=self.height,
            viewBox=f"0 0 {short(self.width)} {short(self.height)}", aria_hidden="true",
        )  # fmt: skip
        return _written(root, _for_page(HoverTexts()))

    def in_file(self) -> str:
        """The picture as a standalone file, on white, in the light theme's colours."""
        width, height = (size + 2 * MARGIN_PX for size in (self.width, self.height))
        box = f"{-MARGIN_PX} {-MARGIN_PX} {short(width)} {short(height)}"
        ground = element("rect", x=-MARGIN_PX, y=-MARGIN_PX, width="100%", height="100%", fill=PAPER_WHITE)
        root = element(
            "svg", ground, *self.elements, xmlns="http://www.w3.org/2000/svg", width=width, height=height, viewBox=box,
            font_family=FONT, font_size=f"{TEXT_PX}px", fill="none",
        )  # fmt: skip
        return _written(root, _for_file)


def titled(picture: Picture, title: str, lines: Iterable[str], colours: tuple[str, str]) -> Picture:
    """A picture below a title and lines of text, for a standalone file; `colours` are those of title and lines."""
    rows = tuple(lines)
    above = TEXT_PX + 4 + 15 * len(rows) + 12
    head = text(0, TEXT_PX, title, fill=colours[0], font_weight=600, font_size=f"{TEXT_PX + 1}px")
    under = (text(0, TEXT_PX + 17 + 15 * index, line, fill=colours[1]) for index, line in enumerate(rows))
    moved = group(picture.elements, transform=f"translate(0,{above})")
    width = max(picture.width, *(text_px(line) for line in (title, *rows)))
    return Picture(width, picture.height + above, (head, *under, moved))


def _written(root: Element, attribute: Attribute) -> str:
    head = root.tag + "".join(attribute(name, value) for name, value in root.attributes)
    within = (
        escape(visible(child, lines=True)) if isinstance(child, str) else _written(child, attribute)
        for child in root.children
    )
    return f"<{head}>{''.join(within)}</{root.tag}>" if root.children else f"<{head}/>"


def _for_page(texts: HoverTexts) -> Attribute:
    def attribute(name: str, value: str) -> str:
        if name in _COLOURED and value in VARIABLES:
            return f' {name}="var({VARIABLES[value]})"'
        return f' {name}="{texts.number(value) if name == TIP else escape(value)}"'

    return attribute


def _for_file(name: str, value: str) -> str:
    return "" if name.startswith(_FOR_THE_PAGE) else f' {name}="{escape(value)}"'
