"""Texts of others are shown, never obeyed: by a terminal, a spreadsheet, a renderer of Markdown."""

from __future__ import annotations

import csv
import io
import json
import sys
import unicodedata

import polars as pl
import pytest
from rich.table import Table

from steelyard.cli.terminal.output import Terminal, complain, print_table, say
from steelyard.model.errors import StudyError
from steelyard.report.export import as_csv
from steelyard.shown_text import Shown, csv_cell, json_text, markdown, markdown_prose, shown_json, visible

OBEYED = [
    *map(chr, range(0x20)), *map(chr, range(0x7F, 0xA0)), *"\u061c\u200e\u200f\u2028\u2029\ufeff",
    *map(chr, range(0x202A, 0x202F)), *map(chr, range(0x2066, 0x206A)), *"\u200b\u00ad\u2060\u180e",
]  # fmt: skip
TEXT = "".join(OBEYED)


def obeyed(text: str) -> set[str]:
    return {unicodedata.name(one, repr(one)) for one in text if one in OBEYED}


def test_what_a_terminal_obeys_has_a_sign_in_its_place() -> None:
    assert obeyed(visible(TEXT)) == set()
    assert len(visible(TEXT)) == len(TEXT)
    assert visible("\x1b[31m\x07\x7f\x9b") == "␛[31m␇␡\N{REPLACEMENT CHARACTER}"
    assert visible("a\n\tb\r", lines=True) == "a\n\tb␍"
    assert visible("é 😀 שלום \u00a0") == "é 😀 שלום \u00a0"


def test_marks_that_nobody_sees_have_a_sign_but_joiners_stay() -> None:
    unseen = [chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) == "Cf"]
    assert [one for one in unseen if visible(one) == one] == ["\u200c", "\u200d"]
    assert visible("al\u200bpha\u00ad") == "al\N{REPLACEMENT CHARACTER}pha\N{REPLACEMENT CHARACTER}"
    assert visible("👩\u200d💻 می\u200cخواهم") == "👩\u200d💻 می\u200cخواهم"


@pytest.mark.parametrize("sign", [*"=+-@\t\r\n", *"＝＋－＠"])
def test_a_text_is_no_formula(sign: str) -> None:
    for text in (f"{sign}HYPERLINK(1)", f" {sign}1+1", f"'{sign}a"):
        cell = csv_cell(text)
        assert cell == "'" + visible(text)
    assert csv_cell(f"a{sign}b") == visible(f"a{sign}b")


@pytest.mark.parametrize("text", ["-5", "+3.5e4", "-.5", "12", "-20%", "", "a", "'quoted'"])
def test_numbers_and_plain_texts_stay(text: str) -> None:
    assert csv_cell(text) == text


def test_columns_of_numbers_are_not_touched() -> None:
    frame = pl.DataFrame({"=head": ["=1+1", None, "-5"], "value": [-1.5, 2.0, None], "n": [-1, 0, 2**62]})
    rows = list(csv.reader(io.StringIO(as_csv(frame))))
    assert rows == [
        ["'=head", "value", "n"], ["'=1+1", "-1.5", "-1"], ["", "2.0", "0"], ["-5", "", "4611686018427387904"],
    ]  # fmt: skip


MARKUP = "<img src=x onerror=alert(1)> [a](javascript:b) ![c](//d) [e]: f *g* _h_ `<i>` ``j` &lt; ~~k~~ | \\| \\"


def test_names_in_markdown_are_no_markup() -> None:
    text = markdown(MARKUP)
    for sign in "<>[]*`|~_":
        assert text.count(sign) == text.count(f"\\{sign}") + (sign == "_") * 0
    assert "&amp;lt;" in text
    assert markdown("a\nb\x1b") == "a b␛"


def test_sentences_keep_intervals_words_and_code() -> None:
    assert markdown_prose("a_b took 5 s [4, 6], p 0.01: `run <x>`") == "a_b took 5 s [4, 6], p 0.01: `run <x>`"
    text = markdown_prose(MARKUP)
    assert "<img" not in text
    assert "](" not in text.replace("\\](", "")
    assert "]:" not in text.replace("\\]:", "")
    assert text.count("|") == text.count("\\|")


@pytest.mark.parametrize("text", ["# a", "> a", "- a", "+ a", "1. a", "1) a", "---", "==="])
def test_no_text_begins_a_block(text: str) -> None:
    for shown in (markdown(text), markdown_prose(text)):
        assert "\\" in shown[: text.index(" ") if " " in text else 1] + shown[1:2]


def test_json_keeps_the_value_and_no_character_that_is_obeyed() -> None:
    for ascii_only in (True, False):
        text = json_text({"a": TEXT}, ensure_ascii=ascii_only)
        assert obeyed(text) == set()
        assert json.loads(text) == {"a": TEXT}
    assert json.loads(shown_json('{"a": "\x9b\U000e0041"}')) == {"a": "\x9b\U000e0041"}


@pytest.mark.parametrize("terminal", [True, False])
def test_a_console_shows_texts_and_keeps_its_own_colours(terminal: bool) -> None:
    hostile = f"{TEXT}[red]x[/red][/none][link=http://evil]y[/link]"
    file = io.StringIO()
    console = Terminal(file=file, force_terminal=terminal, width=400, color_system="standard" if terminal else None)
    say(console, hostile, style="bold")
    console.print(hostile, highlight=False)
    complain(console, StudyError(hostile, hostile))
    table = Table("column", hostile, title=hostile)
    table.add_row("a", hostile)
    print_table(table, console)
    shown = file.getvalue()
    own = [part.partition("m")[0] for part in shown.split("\x1b[")[1:]]
    assert all(part.replace(";", "").isdigit() for part in own)
    assert bool(own) is terminal
    assert obeyed(shown.replace("\x1b[", "").replace("\n", "").replace("\t", "")) == set()
    assert "[red]x[/red][/none][link=http://evil]" in shown


def test_a_stream_of_a_tool_in_whose_place_we_are() -> None:
    file = io.StringIO()
    print("a", TEXT, file=Shown(file), flush=True)
    assert obeyed(file.getvalue()) == obeyed("\n\t")
