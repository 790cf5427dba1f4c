"""The campaign of studies: 1,000 mutated study files, each read by `check`."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tools.campaigns.campaign import Case, Finding, Outcome
from tools.campaigns.command import call, lines_of

CASES: Final = 1000
LIMIT_S: Final = 20.0
STUDIES: Final = Path(__file__).resolve().parents[2] / "studies"
BASES: Final = ("quickstart.toml", "simulated.toml", "richardson2017.toml")
LONG: Final = 100_000
ODD_VALUES: Final = (
    "5", "-1", "0", "1e9", "1e400", "nan", "inf", "true", '""', "[]", "{}", "[[]]", "[1, [2, 'a']]", "{a = {b = 1}}",
    "1979-05-27", "07:32:00", "9" * 400, "0x10", '"\\u0000"', '"env:HOME"', '"file:/etc/passwd"', '"../../x"',
    f'"{"x" * LONG}"', f"[{'1,' * 10_000}]", "[" * 3000 + "]" * 3000, "{a=" * 500 + "1" + "}" * 500, "'''a\nb'''",
    '"=1+1"', '"\\u202e"', "['a', 1, true]", '"1 or more"',
)  # fmt: skip
Mutation = Callable[[bytes, random.Random], bytes]


def _lines(content: bytes) -> list[bytes]:
    return content.split(b"\n")


def _pairs(lines: Sequence[bytes]) -> list[int]:
    return [index for index, line in enumerate(lines) if re.match(rb'["\w.]+ *=', line)]


def value(content: bytes, rng: random.Random) -> bytes:
    """One value becomes an odd one."""
    lines = _lines(content)
    index = rng.choice(_pairs(lines))
    lines[index] = lines[index].partition(b"=")[0] + b"= " + rng.choice(ODD_VALUES).encode()
    return b"\n".join(lines)


def added(content: bytes, rng: random.Random) -> bytes:
    """A key of a section is given that may not belong there."""
    keys = ("probes", "name", "nodes", "records", "threads", "until", "x", "x.y.z", '"a b"', "k" * LONG, "treatments")
    lines = _lines(content)
    lines.insert(rng.randrange(len(lines)), f"{rng.choice(keys)} = {rng.choice(ODD_VALUES)}".encode())
    return b"\n".join(lines)


def key(content: bytes, rng: random.Random) -> bytes:
    """A key is misspelt, or said twice."""
    lines = _lines(content)
    index = rng.choice(_pairs(lines))
    name, _, rest = lines[index].partition(b"=")
    if rng.random() < 0.3:
        lines.insert(index, lines[index])
    else:
        at = rng.randrange(len(name))
        lines[index] = name[:at] + rng.choice((b"", b"x", b".", b'"', b" ")) + name[at + 1 :] + b"=" + rest
    return b"\n".join(lines)


def lines(content: bytes, rng: random.Random) -> bytes:
    """Lines deleted, exchanged, doubled."""
    all_lines = _lines(content)
    for _ in range(rng.randint(1, 3)):
        a, b = rng.randrange(len(all_lines)), rng.randrange(len(all_lines))
        match rng.randrange(3):
            case 0:
                all_lines[a], all_lines[b] = all_lines[b], all_lines[a]
            case 1:
                all_lines.insert(a, all_lines[b])
            case _:
                del all_lines[a]
    return b"\n".join(all_lines)


def sections(content: bytes, rng: random.Random) -> bytes:
    """A section becomes a value, a list of tables, or another one."""
    heads = re.findall(rb"^\[[\w.]+\]", content, re.MULTILINE)
    head = rng.choice(heads)
    name = head.strip(b"[]")
    others = (
        b"[[" + name + b"]]",
        b"[" + name + b".x]",
        b"[x]",
        b"[" + name + b".a" * 2000 + b"]",
        rng.choice(heads),
        b"",
    )
    return content.replace(head, rng.choice(others), 1)


def characters(content: bytes, rng: random.Random) -> bytes:
    """Bytes changed, or some that are no text."""
    changed = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(changed))
        odd = (b"\xff", b"\x00", b"\xef\xbb\xbf", b"\r", b'"', b"[", b"'''", b"#", b"=", bytes([rng.randrange(256)]))
        changed[at : at + rng.randint(0, 2)] = rng.choice(odd)
    return bytes(changed)


def cut(content: bytes, rng: random.Random) -> bytes:
    """The file ends too early, begins with a byte order mark, or is repeated."""
    match rng.randrange(4):
        case 0:
            return b"\xef\xbb\xbf" + content
        case 1:
            return content + content
        case 2:
            return content.decode().encode("utf-16")
        case _:
            return content[: rng.randrange(len(content))]


MUTATIONS: Final[dict[str, Mutation]] = {
    "an odd value": value,
    "a key too many": added,
    "a wrong key": key,
    "other lines": lines,
    "other sections": sections,
    "other characters": characters,
    "another file": cut,
}


class Studies:
    """Mutated study files against `check`."""

    name = "studies"
    about = f"{CASES:,} mutated study files against `check`"
    limit_s = LIMIT_S

    def cases(self, seed: int) -> Sequence[Case]:
        """Each base and mutation alike often."""
        kinds = list(MUTATIONS)
        return [
            Case(
                f"{number:04}", kinds[number % len(kinds)], {"base": BASES[number % len(BASES)], "seed": seed + number}
            )
            for number in range(CASES)
        ]

    @contextmanager
    def world(self, folder: Path) -> Iterator[Path]:
        """The ready-made studies with their workload files."""
        shutil.copytree(STUDIES, folder, dirs_exist_ok=True)
        yield folder

    def run(self, world: Path, case: Case, folder: Path) -> Outcome:
        """Mutate and check."""
        study = world / "mutated.toml"
        rng = random.Random(case.values["seed"])
        study.write_bytes(MUTATIONS[case.stratum]((world / case.values["base"]).read_bytes(), rng))
        checked = call("check", study, "--store", folder / "store", limit_s=LIMIT_S)
        findings = []
        if checked.unforeseen:
            findings.append(Finding("traceback", checked.err.strip()[:300]))
        if checked.code is None:
            findings.append(Finding("late", f"ended after {checked.seconds:.0f} s"))
        if checked.code not in (0, 2, None):
            findings.append(Finding("unlike", f"exit code {checked.code}: {checked.last_line[:200]}"))
        if checked.code == 2 and str(study) not in checked.err:
            findings.append(Finding("unlike", f"the file is not named: {checked.err[:200]}"))
        if len(checked.err) > MOST_CHARS:
            findings.append(Finding("unlike", f"a message of {len(checked.err):,} characters"))
        if list(folder.iterdir()):
            findings.append(Finding("leftover", "check wrote files"))
        has_line = re.search(rf"{re.escape(str(study))}:\d+:", checked.err) is not None
        return Outcome(findings, {"calls": lines_of([checked]), "refused": checked.code == 2, "line": has_line})


MOST_CHARS: Final = 20_000
CAMPAIGN: Final = Studies()
