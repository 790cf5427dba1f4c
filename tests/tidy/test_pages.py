"""Pages are found: each is in the index, and no link of a page leads nowhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
INDEX = ROOT / "docs" / "README.md"
LISTED = ("tutorial", "howto", "reference", "explanation")
PAGES = sorted(page for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")) if "decisions" not in page.parts)
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def targets(page: Path) -> list[str]:
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return [target for target in LINK.findall(text) if "://" not in target and not target.startswith("mailto:")]


def test_every_page_is_in_the_index() -> None:
    listed = {(INDEX.parent / target).resolve() for target in targets(INDEX)}
    pages = {page for folder in LISTED for page in (ROOT / "docs" / folder).glob("*.md")}
    assert sorted(str(page.relative_to(ROOT)) for page in pages - listed) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_link_leads_nowhere(page: Path) -> None:
    assert [target for target in targets(page) if not (page.parent / target).exists()] == []


PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)")
MOST_PICTURE_BYTES = 150_000
LEAST_WORDS = 4


def test_pictures_are_there_small_and_described() -> None:
    """`python -m tools.docs.pictures` makes those of the how-tos."""
    shown: set[Path] = set()
    for page in PAGES:
        for text, target in PICTURE.findall(page.read_text(encoding="utf-8")):
            picture = (page.parent / target).resolve()
            assert picture.is_file(), f"{page.name} shows {target}"
            assert picture.stat().st_size <= MOST_PICTURE_BYTES, f"{target} is too large"
            assert len(text.split()) >= LEAST_WORDS, f"{page.name} does not say what {target} shows"
            shown.add(picture)
    figures = set((ROOT / "docs" / "figures").iterdir())
    assert sorted(path.name for path in figures - shown) == []


def test_the_site_and_steelyard_lock_the_same_versions() -> None:
    """The packages of `make docs` are installed into the environment that the other lock made."""
    pinned = [
        dict(re.findall(r"^([\w.-]+)==(\S+)", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE))
        for name in ("requirements.lock", "requirements-docs.lock")
    ]
    common = pinned[0].keys() & pinned[1].keys()
    assert common
    assert {name: (pinned[0][name], pinned[1][name]) for name in common if pinned[0][name] != pinned[1][name]} == {}
