"""Picture files: SVG is written here, PNG and PDF come from it through vl-convert."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import vl_convert

from steelyard.atomic_file import write_output
from steelyard.report.draw.svg import Picture

SUFFIXES: Final = (".svg", ".png", ".pdf")
PNG_SCALE: Final = 3.0
"""Pixels of a PNG for each point of the figure."""


def write(picture: Picture, path: Path) -> None:
    """Write a picture in the format of the path's suffix, one of `SUFFIXES`. Raises OSError."""
    drawing = picture.in_file()
    match path.suffix.lower():
        case ".svg":
            write_output(path, drawing)
        case ".png":
            write_output(path, vl_convert.svg_to_png(drawing, scale=PNG_SCALE))
        case _:
            write_output(path, vl_convert.svg_to_pdf(drawing))
