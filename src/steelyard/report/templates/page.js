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
  document.addEventListener("pointermove", (event) => {
    const mark = event.target instanceof Element ? event.target.closest("[data-tip]") : null;
    tip.hidden = !mark;
    if (!mark) return;
    tip.textContent = mark.dataset.tip;
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(8, Math.min(event.clientX + 12, innerWidth - box.width - 8))}px`;
    tip.style.top = `${event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 10 : event.clientY + 18}px`;
  });
  addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });

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
  const quoted = (cell) => {
    const text = cell === null ? "" : typeof cell === "object" ? JSON.stringify(cell) : String(cell);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const offer = (item, text, act) => {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = text;
    made.addEventListener("click", act);
    item.append(" ", made);
  };
  const data = JSON.parse(document.getElementById("data").textContent);
  for (const item of document.querySelectorAll("[data-table]")) {
    const name = item.dataset.table;
    const { columns, rows } = data[name];
    offer(item, "CSV", () => save(`${name}.csv`, "text/csv", [columns, ...rows].map((row) => row.map(quoted).join(",")).join("\r\n") + "\r\n"));
    offer(item, "JSON", () => save(`${name}.json`, "application/json", JSON.stringify(data[name])));
  }

  // Printed, everything is open.
  addEventListener("beforeprint", () => document.querySelectorAll("details:not([open])").forEach((fold) => { fold.open = true; fold.dataset.folded = ""; }));
  addEventListener("afterprint", () => document.querySelectorAll("details[data-folded]").forEach((fold) => { fold.open = false; delete fold.dataset.folded; }));
})();
