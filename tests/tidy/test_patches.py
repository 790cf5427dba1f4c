"""Tests hold behaviour through seams that users have, not by patches of the inside: their number only falls."""

from __future__ import annotations

import ast
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
MOST = 75
"""Patches in all tests. A new one takes the place of an old one: hand the part in, or put a real file, program or
environment variable where it is looked for."""


def is_patch(node: ast.AST) -> bool:
    """Whether it is a call of `setattr` of a fixture, whatever its name, or of mock's `patch.object`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    owner = node.func.value
    return node.func.attr == "setattr" or (node.func.attr == "object" and ast.unparse(owner).endswith("patch"))


def test_tests_patch_no_more_than_before() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(TESTS.rglob("*.py"))}
    every = {path: sum(map(is_patch, ast.walk(ast.parse(text)))) for path, text in texts.items()}
    most = sorted(((number, str(path.relative_to(TESTS))) for path, number in every.items() if number), reverse=True)
    patches = sum(every.values())
    assert patches <= MOST, f"{patches} patches, at most {MOST}; most are in {most[:5]}"
