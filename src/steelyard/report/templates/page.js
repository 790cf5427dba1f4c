"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("scripted");

  // Theme: the system's, until the reader chooses; #dark and #light in the address choose too.
  const button = document.getElementById("theme");
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : prefersDark.matches);
  const label = () => { button.textContent = isDark() ? "Light theme" : "Dark theme"; };
  if (location.hash === "#dark" || location.hash === "#light") root.dataset.theme = location.hash.slice(1);
  button.hidden = false;
  button.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; label(); });
  prefersDark.addEventListener("change", label);
  label();

  // The value of a mark under the pointer.
  const tip = document.getElementById("tip");
  const tips = JSON.parse(document.getElementById("tips").textContent);
  document.addEventListener("pointermove", (event) => {
    const mark = event.target instanceof Element ? event.target.closest("[data-tip]") : null;
    tip.hidden = !mark;
    if (!mark) return;
    tip.textContent = tips[Number(mark.dataset.tip)];
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(8, Math.min(event.clientX + 12, innerWidth - box.width - 8))}px`;
    tip.style.top = `${event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 10 : event.clientY + 18}px`;
  });
  addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });

  // A key shows and hides its series, in every picture of its figure; colours tell the series apart.
  const marks = (figure, colour) => figure.querySelectorAll(`svg.chart [stroke="${colour}"], svg.chart [fill="${colour}"]`);
  for (const figure of document.querySelectorAll("figure")) {
    const items = [...figure.querySelectorAll(".key-item")];
    const colours = items.map((item) => item.dataset.colour);
    if (items.length < 2 || new Set(colours).size < items.length) continue;
    items.forEach((item, index) => {
      if (!marks(figure, colours[index]).length) return;
      const toggle = document.createElement("button");
      toggle.type = "button";
      toggle.className = item.className;
      toggle.dataset.colour = colours[index];
      toggle.setAttribute("aria-pressed", "true");
      toggle.title = "Show or hide";
      toggle.append(...item.childNodes);
      item.replaceWith(toggle);
      toggle.addEventListener("click", () => {
        const shown = toggle.getAttribute("aria-pressed") !== "true";
        toggle.setAttribute("aria-pressed", String(shown));
        marks(figure, colours[index]).forEach((mark) => mark.classList.toggle("off", !shown));
      });
    });
  }

  // The numbers of a moment of a trial, under the pointer or by the arrow keys.
  const written = (x) => shownNumber(x, 3, true);
  const said = (values, row) => {
    const [at, achieved, offered, failed, ...times] = row;
    const parts = [`${at} s`, `${written(achieved)} op/s${offered === null ? "" : ` of ${written(offered)} offered`}`];
    values.names.forEach((name, index) => { if (times[index] !== null && times[index] !== undefined) parts.push(`${name} ${written(times[index])} ms`); });
    if (failed) parts.push(`${written(failed)} failed`);
    return parts.join(" \u00b7 ");
  };
  for (const panel of document.querySelectorAll("[data-values]")) {
    const values = JSON.parse(panel.dataset.values);
    const number = (cell) => (cell.textContent === "\u2013" ? null : Number(cell.textContent));
    values.rows = [...panel.closest("figure").querySelectorAll(".course tbody tr")].map((row) => [...row.cells].map(number));
    for (const chart of panel.querySelectorAll("svg.chart")) {
      const width = chart.viewBox.baseVal.width, height = chart.viewBox.baseVal.height;
      const inside = width - values.left - values.right;
      const cursor = document.createElementNS(chart.namespaceURI, "path");
      cursor.setAttribute("class", "cursor");
      chart.append(cursor);
      let place = -1;
      const show = (index, left, top) => {
        place = Math.max(0, Math.min(values.rows.length - 1, index));
        const row = values.rows[place];
        const seen = zoom.shown(chart);
        const x = values.left + inside * (Math.min((row[0] + values.step / 2) / values.seconds, 1) - seen.from) / (seen.to - seen.from);
        if (x < values.left || x > width - values.right) cursor.removeAttribute("d");
        else cursor.setAttribute("d", `M${x},28V${height - 38}`);
        tip.textContent = said(values, row);
        tip.hidden = false;
        const size = tip.getBoundingClientRect();
        tip.style.left = `${Math.max(8, Math.min(left ?? chart.getBoundingClientRect().left + x, innerWidth - size.width - 8))}px`;
        tip.style.top = `${Math.max(8, Math.min(top, innerHeight - size.height - 8))}px`;
      };
      const hide = () => { tip.hidden = true; cursor.removeAttribute("d"); };
      chart.addEventListener("pointermove", (event) => {
        const box = chart.getBoundingClientRect();
        const seen = zoom.shown(chart), place = ((event.clientX - box.left) / box.width * width - values.left) / inside;
        const at = (seen.from + place * (seen.to - seen.from)) * values.seconds;
        if (place < 0 || place > 1) { hide(); return; }
        show(Math.floor(at / values.step), event.clientX + 12, event.clientY + 18);
        event.stopPropagation();
      });
      chart.addEventListener("pointerleave", hide);
      chart.addEventListener("blur", hide);
      chart.setAttribute("tabindex", "0");
      chart.addEventListener("keydown", (event) => {
        if (event.shiftKey) return;
        const step = { ArrowLeft: -1, ArrowRight: 1, Home: -1e9, End: 1e9 }[event.key];
        if (event.key === "Escape") hide();
        if (step === undefined) return;
        event.preventDefault();
        show(place + step, undefined, chart.getBoundingClientRect().top);
      });
    }
  }

  // Of each treatment one trial is shown; the reader chooses which.
  for (const chooser of document.querySelectorAll(".chooser")) {
    const choices = [...chooser.children];
    if (choices.length < 2) continue;
    const label = document.createElement("label");
    const list = document.createElement("select");
    choices.forEach((choice) => list.add(new Option(choice.dataset.name)));
    label.append("Show ", list);
    label.className = "choose";
    const show = () => choices.forEach((choice, index) => {
      choice.hidden = index !== list.selectedIndex;
      if ("open" in choice) choice.open = !choice.hidden;
    });
    list.addEventListener("change", show);
    chooser.prepend(label);
    show();
  }

  // Tables sort by a column's head; the order is said to screen readers.
  const value = (cell) => cell.dataset.v ?? cell.textContent;
  const compare = (a, b) => {
    const [x, y] = [a, b].map((text) => Number(text.replaceAll(",", "").replace("\u2212", "-")));
    if (a !== "" && b !== "" && !Number.isNaN(x) && !Number.isNaN(y)) return x - y;
    return a.localeCompare(b, undefined, { numeric: true });
  };
  for (const table of document.querySelectorAll("table[data-sortable]")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, index) => {
      if (!head.textContent.trim()) return;
      const sorter = document.createElement("button");
      sorter.type = "button";
      sorter.append(...head.childNodes);
      head.append(sorter);
      sorter.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") !== "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const rows = [...table.tBodies[0].rows];
        rows.sort((a, b) => (up ? 1 : -1) * compare(value(a.cells[index]), value(b.cells[index])));
        table.tBodies[0].append(...rows);
      });
    });
  }

  // Downloads are made from the data inside the page.
  const save = (name, type, text) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  // Texts of others are shown, never obeyed: as steelyard/shown_text.py does it for files.
  const visible = (text) => text.replace(/[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb]/g, (one) => one < " " ? String.fromCharCode(0x2400 + one.charCodeAt(0)) : one === "\u007f" ? "\u2421" : "\ufffd");
  const isFormula = (text) => /^'*\s*[=+\-@\uff1d\uff0b\uff0d\uff20\t\r\n]/.test(text) && !/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?%?$/i.test(text);
  const inert = (text) => (isFormula(text) ? "'" : "") + visible(text);
  const unmarked = (text) => visible(text).replaceAll(/[\\|`*]|\](?=[(\[:])/g, "\\$&").replaceAll("<", "&lt;");
  const quoted = (cell) => {
    const text = cell === null ? "" : typeof cell === "object" ? JSON.stringify(cell) : typeof cell === "string" ? inert(cell) : String(cell);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const offer = (item, text, act) => {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = text;
    made.addEventListener("click", act);
    item.append(" ", made);
  };
  let tables = null;
  const unpacked = () => (tables ??= new Response(new Blob([Uint8Array.from(atob(document.getElementById("data").textContent), (one) => one.charCodeAt(0))]).stream().pipeThrough(new DecompressionStream("deflate"))).json());
  for (const item of document.querySelectorAll("[data-table]")) {
    const name = item.dataset.table;
    offer(item, "CSV", async () => {
      const { columns, rows } = (await unpacked())[name];
      save(`${name}.csv`, "text/csv", [columns, ...rows].map((row) => row.map(quoted).join(",")).join("\r\n") + "\r\n");
    });
    offer(item, "JSON", async () => save(`${name}.json`, "application/json", JSON.stringify((await unpacked())[name])));
  }

  // A table goes to the clipboard as it is sorted, with units, as TSV for a spreadsheet or as Markdown.
  const cells = (row) => [...row.cells].map((cell) => {
    const unit = cell.querySelector(".unit")?.textContent;
    const text = (unit ? `${cell.textContent.replace(unit, "").trim()} (${unit.trim()})` : cell.textContent.trim());
    return text.replaceAll(/\s+/g, " ");
  });
  const forms = {
    TSV: (rows) => rows.map((row) => row.map(inert).join("\t")).join("\n") + "\n",
    Markdown: ([head, ...rows]) => [head, head.map(() => "---"), ...rows].map((row) => `| ${row.map(unmarked).join(" | ")} |`).join("\n") + "\n",
  };
  const copied = async (text) => {
    try { await navigator.clipboard.writeText(text); return true; } catch { /* not allowed here: the old way */ }
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  };
  const copier = (item, label, text) => offer(item, label, async (event) => {
    const act = event.currentTarget;
    act.textContent = await copied(text()) ? "Copied" : "Not allowed";
    setTimeout(() => { act.textContent = label; }, 1500);
  });
  const bar = (after) => {
    const made = document.createElement("span");
    made.className = "copy";
    after(made);
    return made;
  };
  for (const table of document.querySelectorAll("table[id]")) {
    const caption = table.closest(".table")?.querySelector(".caption");
    if (!caption) continue;
    const made = bar((one) => caption.append(" ", one));
    for (const [name, form] of Object.entries(forms)) copier(made, `Copy ${name}`, () => form([...table.rows].map(cells)));
  }
  // Commands and the citation, too.
  for (const code of document.querySelectorAll(".pairs code, .pairs pre")) {
    if (code.matches("pre") || code.textContent.startsWith("steelyard ")) copier(bar((one) => code.after(one)), "Copy", () => code.textContent);
  }

  // Printed in short, with the folds that are open; with ?print=all, or by the button, everything but the trials that
  // were not chosen.
  const printAll = "print-all";
  if (new URLSearchParams(location.search).get("print") === "all") root.classList.add(printAll);
  const whole = document.getElementById("print-all");
  whole.hidden = false;
  whole.addEventListener("click", () => {
    const already = root.classList.contains(printAll);
    root.classList.add(printAll);
    print();
    if (!already) root.classList.remove(printAll);
  });
  addEventListener("beforeprint", () => {
    if (!root.classList.contains(printAll)) return;
    document.querySelectorAll("details:not([open]):not(.choice)").forEach((fold) => { fold.open = true; fold.dataset.folded = ""; });
  });
  addEventListener("afterprint", () => document.querySelectorAll("details[data-folded]").forEach((fold) => { fold.open = false; delete fold.dataset.folded; }));

  // A link to a fold opens it.
  for (const link of document.querySelectorAll("main a[href^='#']")) {
    link.addEventListener("click", () => {
      const target = document.getElementById(link.hash.slice(1));
      if (target instanceof HTMLDetailsElement) target.open = true;
    });
  }
})();
