"""Pages as PNG, in headless Chromium: a report with numbered places, and a study as `steelyard serve` shows it."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.e2e.chromium import tab

from tools.docs.pictures.small_png import small

SIZE: Final = (1040, 1000)
REPORT_SIZE: Final = (1040, 1420)
"""With the main figure."""
ENDS_S: Final = 60.0
MARKED: Final = (".hardware", "#answer table", "#answer .caveats", "#answer figure")
"""Places of a report that get a number, in this order; the page *Read the report* says what they are."""
POLICY: Final = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
MARKS: Final = """
<style>
.picture-mark { position: absolute; z-index: 99; width: 26px; height: 26px; border-radius: 13px; background: #b42318;
 color: #fff; font: bold 15px/26px sans-serif; text-align: center; }
</style>
<script>
addEventListener("load", () => PLACES.forEach((place, index) => {
  const found = document.querySelector(place)
  const mark = document.createElement("span")
  mark.className = "picture-mark"
  mark.textContent = index + 1
  const box = found.getBoundingClientRect()
  mark.style.left = `${Math.max(4, box.left + scrollX - 34)}px`
  mark.style.top = `${box.top + scrollY}px`
  document.body.append(mark)
}))
</script>
"""


def photograph_report(page: Path, into: Path) -> None:
    """The answer of a report, with its places numbered. Raises ValueError if the page lacks one of them."""
    text = page.read_text(encoding="utf-8")
    for place in MARKED:
        *_, word = place.removeprefix("#answer ").partition(".")
        if word not in text:
            raise ValueError(f"the page has no {place}: change MARKED and docs/howto/read-the-report.md")
    marked = page.with_name("marked.html")
    marks = MARKS.replace("PLACES", json.dumps(MARKED))
    # The page allows no scripts but its own.
    text = POLICY.sub("", text).replace("</body>", f"{marks}</body>")
    marked.write_text(text, encoding="utf-8")
    photograph(marked.as_uri(), into, size=REPORT_SIZE)


def photograph_study(stores: Path, study: str, into: Path, *, until: str = "true") -> None:
    """A study as `steelyard serve` shows it, once an expression is true of its page."""
    argv = [sys.executable, "-m", "steelyard", "serve", str(stores), "--port", "0"]
    server = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert server.stdout is not None
        address, mark, token = server.stdout.readline().strip().partition("?")
        photograph(f"{address}s/{study}{mark}{token}", into, until=until)
    finally:
        server.terminate()
        server.wait(ENDS_S)


def photograph(url: str, into: Path, *, until: str = "true", size: tuple[int, int] = SIZE) -> None:
    """A page in light colours, once an expression is true. Raises RuntimeError if there is no browser."""
    chromium = os.environ.get("STEELYARD_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        raise RuntimeError("needs Chromium: apt install chromium")
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile,
        tab(chromium, url, Path(profile), size=f"{size[0]},{size[1]}") as page,
    ):
        page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
        page.call("Emulation.setScrollbarsHidden", hidden=True)
        page.until(until)
        shown = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": False}
        page.call("Emulation.setDeviceMetricsOverride", **shown)
        png = base64.b64decode(page.call("Page.captureScreenshot", format="png")["data"])
    into.write_bytes(small(png))
