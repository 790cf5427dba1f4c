"""Pages of the site, in the folders of the repository, so that relative links stay as they are.

A linked file that is not a page (a study, a schema, a module) becomes a page that shows its text. A linked folder
becomes a page that lists its pages.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

SECTIONS: Final = (
    ("Tutorial", "docs/tutorial"),
    ("How-to guides", "docs/howto"),
    ("Reference", "docs/reference"),
    ("Explanation", "docs/explanation"),
    ("Gallery", "docs/gallery"),
    ("Studies", "studies"),
)
PROJECT: Final = ("ARCHITECTURE.md", "CONTRIBUTING.md", "STYLE.md", "BENCHMARKS.md", "CHANGELOG.md")
INDEX: Final = "docs/README.md"
GROUPED: Final = "docs/howto"
LOOKED_UP: Final = "Look it up"
"""Its heading of the reference."""
CODE: Final = re.compile(r"(```.*?```|`[^`\n]*`)", re.DOTALL)
LINK: Final = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")
SHOWN: Final = (".html", ".svg", ".png")
"""Files that a browser shows by itself."""
LANGUAGES: Final = {".rs": "rust", ".py": "python", ".cff": "yaml", ".jsonl": "json", "": "text"}
FOREIGN: Final = re.compile(r"^[a-z][a-z0-9+.-]*:")


def pages(root: Path) -> list[Path]:
    """The repository's pages."""
    return sorted([*root.glob("*.md"), *root.glob("docs/**/*.md")])


def stage(root: Path, into: Path) -> None:
    """Writes all files of the site into a new folder."""
    shutil.copytree(root / "docs", into / "docs")
    shutil.copytree(Path(__file__).parent / "assets", into / "assets")
    for study in sorted(root.glob("studies/**/*.toml")):
        _show(root, into, study)
    for page in pages(root):
        text = _with_links(page.read_text(encoding="utf-8"), partial(_target, root, into, page))
        (into / page.relative_to(root)).write_text(text, encoding="utf-8")


def _with_links(text: str, change: Callable[[str], str]) -> str:
    """The page with each link's target changed, except in code."""
    parts = CODE.split(text)
    for index in range(0, len(parts), 2):
        parts[index] = LINK.sub(lambda found: f"]({change(found[1])}{found[2] or ''})", parts[index])
    return "".join(parts)


def _target(root: Path, into: Path, page: Path, target: str) -> str:
    """What a link of a page leads to on the site."""
    path = (page.parent / target).resolve()
    if FOREIGN.match(target) or path.suffix in (".md", *SHOWN):
        return target
    if path.is_dir():
        _list(root, into, path)
        return target.rstrip("/") + "/README.md"
    _show(root, into, path)
    return target + ".md"


def _show(root: Path, into: Path, path: Path) -> None:
    name = path.relative_to(root)
    page = into / f"{name}.md"
    if not page.exists():
        page.parent.mkdir(parents=True, exist_ok=True)
        language = LANGUAGES.get(path.suffix, path.suffix[1:])
        page.write_text(
            f"# {path.name}\n\n`{name}`\n\n````{language}\n{path.read_text(encoding='utf-8')}````\n", encoding="utf-8"
        )


def _list(root: Path, into: Path, folder: Path) -> None:
    name = folder.relative_to(root)
    page = into / name / "README.md"
    if not page.exists():
        page.parent.mkdir(parents=True, exist_ok=True)
        files = sorted(path for path in folder.iterdir() if path.suffix in (".md", ".toml"))
        rows = (f"* [{_title(path)}]({path.name}{'' if path.suffix == '.md' else '.md'})" for path in files)
        page.write_text(f"# {folder.name.capitalize()}\n\n" + "\n".join(rows) + "\n", encoding="utf-8")


def _title(path: Path) -> str:
    """The heading of a page, the name of another file."""
    if path.suffix != ".md":
        return path.name
    return path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


def navigation(root: Path, sources: Path) -> list[Any]:
    """The sidebar, in the order of the index; guides also under its headings. Raises ValueError if one is not there."""
    places: dict[str, tuple[int, str]] = {}
    heading = ""
    for line in (root / INDEX).read_text(encoding="utf-8").splitlines():
        heading = line.removeprefix("## ") if line.startswith("## ") else heading
        for target, _ in LINK.findall(line):
            # What a reader looks up is listed first, whatever named it before.
            if heading == LOOKED_UP or f"docs/{target}" not in places:
                places[f"docs/{target}"] = (len(places) - (1000 if heading == LOOKED_UP else 0), heading)
    sections: list[Any] = [{title: list(_section(sources, folder, places))} for title, folder in SECTIONS]
    decisions = [str(path.relative_to(sources)) for path in sorted(sources.glob("docs/decisions/*.md"))]
    return [{"Home": ["README.md", INDEX]}, *sections, {"Project": [*PROJECT, {"Decisions": decisions}]}]


def _section(sources: Path, folder: str, places: Mapping[str, tuple[int, str]]) -> Iterator[Any]:
    """A section's pages, each followed by those in the folder of its name, or in groups."""

    def place(name: str) -> tuple[int, str]:
        return places.get(name, (len(places), ""))[0], name

    own = {str(path.relative_to(sources)) for path in (sources / folder).glob("*.md")}
    pages = sorted(own - {f"{folder}/README.md"}, key=place)
    if folder == GROUPED:
        groups: dict[str, list[str]] = {}
        for name in pages:
            if name not in places:
                raise ValueError(f"{name} is in no table of {INDEX}: add a link under the heading of its group")
            groups.setdefault(places[name][1], []).append(name)
        yield from groups.pop("", [])
        yield from ({heading: names} for heading, names in groups.items())
        return
    for name in pages:
        inner = list((sources / name).with_suffix("").glob("*.md"))
        if inner:
            listed = [target for target, _ in LINK.findall((sources / name).read_text(encoding="utf-8"))]
            inner.sort(key=lambda path: listed.index(f"{path.parent.name}/{path.name}"))
            yield {_title(sources / name): [name, *(str(path.relative_to(sources)) for path in inner)]}
        else:
            yield name
    for path in sorted((sources / folder).glob("*/README.md")):
        files = sorted(str(other.relative_to(sources)) for other in path.parent.glob("*.toml.md"))
        yield {path.parent.name.capitalize(): files} if files else str(path.relative_to(sources))
