"use strict";
const zoom = (() => {
  // Zoom: a figure shows a part of its axes, as fractions of them. Marks are moved, never stretched where they have a
  // size of their own; axes are drawn anew from what they say of themselves (see zoom.py).
  const EDGE_PX = 3, NAME_PX = 140;
  const WHOLE = { x: [0, 1], y: [0, 1] };
  const parts = new Map();
  const partOf = (chart) => parts.get(chart) ?? WHOLE;
  const isWhole = ({ x, y }) => x[0] === 0 && x[1] === 1 && y[0] === 0 && y[1] === 1;
  const shown = (chart) => { const [from, to] = partOf(chart).x; return { from, to }; };
  const PLACE = /translate\((-?[\d.e-]+)[ ,]+(-?[\d.e-]+)\)/;
  const once = (element, name, read) => (element[name] ??= read());
  const placeOf = (element) => once(element, "placed", () => (PLACE.exec(element.getAttribute("transform") ?? "") ?? [0, 0, 0]).slice(1).map(Number));
  const put = (element, x, y) => element.setAttribute("transform", `translate(${x.toFixed(1)},${y.toFixed(1)})`);
  let clips = 0;
  const clipped = (group, [left, top, width, height]) => once(group, "clipped", () => {
    const clip = document.createElementNS(group.namespaceURI, "clipPath"), box = document.createElementNS(group.namespaceURI, "rect");
    clip.id = `clip-${clips += 1}`;
    for (const [name, size] of Object.entries({ x: left, y: top, width, height })) box.setAttribute(name, size);
    clip.append(box);
    group.before(clip);
    group.setAttribute("clip-path", `url(#${clip.id})`);
    return true;
  });
  // Points and words keep their size and move; lines move by both ends; areas, curves and bars are stretched, but not
  // their strokes, unless the stroke is itself a measure (`data-grows`).
  const kindOf = (mark) => once(mark, "kind", () => {
    if (mark.tagName === "line") return "line";
    if (mark.tagName === "circle") return "point";
    if (mark.tagName === "text") return mark.hasAttribute("x") ? "word" : "point";
    return mark.tagName === "path" && mark.hasAttribute("transform") && !/^M0,0h/.test(mark.getAttribute("d")) ? "point" : "shape";
  });
  const own = (mark, name) => Number(mark.getAttribute(name) ?? 0);
  const moveMarks = (group, part) => {
    const [left, top, width, height] = group.dataset.marks.split(" ").map(Number);
    clipped(group, [left - EDGE_PX, top - EDGE_PX, width + EDGE_PX + (group.dataset.words === undefined ? EDGE_PX : NAME_PX), height + 2 * EDGE_PX]);
    const [x0, x1] = part.x, [y0, y1] = part.y, sx = 1 / (x1 - x0), sy = 1 / (y1 - y0);
    const tx = left - sx * (left + x0 * width), ty = top - sy * (top + (1 - y1) * height);
    for (const mark of group.querySelectorAll("path, circle, line, text, rect")) {
      const kind = kindOf(mark), [a, b] = placeOf(mark);
      if (kind === "word") {
        mark.setAttribute("x", tx + sx * once(mark, "first", () => own(mark, "x")));
        continue;
      }
      if (kind === "line") {
        const far = once(mark, "far", () => [own(mark, "x2"), own(mark, "y2")]);
        mark.setAttribute("x2", sx * far[0]);
        mark.setAttribute("y2", sy * far[1]);
      }
      if (kind === "shape") {
        mark.setAttribute("transform", `matrix(${sx} 0 0 ${sy} ${tx + sx * a} ${ty + sy * b})`);
        if (mark.dataset.grows === undefined) mark.setAttribute("vector-effect", "non-scaling-stroke");
      } else put(mark, tx + sx * a, ty + sy * b);
    }
  };
  const STEPS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400];
  const ticksOf = (kind, low, high, most) => {
    const found = [];
    if (kind === "log") {
      for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; power += 1) for (const mantissa of [1, 2, 5]) {
        const tick = mantissa * 10 ** power;
        if (tick >= low && tick <= high) found.push(tick);
      }
      if (found.length > 1) return found.length > 8 ? found.filter((tick) => /^1/.test(tick.toExponential())) : found;
      found.length = 0;
    }
    const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough));
    const step = kind === "clock" ? STEPS_S.find((one) => one >= rough) ?? 86400 : [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough * 0.999);
    for (let index = Math.ceil(low / step - 1e-9); index * step <= high * (1 + 1e-12); index += 1) found.push(index * step);
    return found;
  };
  const clock = (seconds, fine) => [Math.floor(seconds / 3600) % 24, Math.floor(seconds / 60) % 60, ...(fine ? [Math.floor(seconds) % 60] : [])].map((one) => String(one).padStart(2, "0")).join(":");
  const labelled = (kind, tick, all) => (kind === "clock" ? clock(tick, all.some((one) => one % 60)) : shownNumber(tick, 6, true));
  // One axis: which of x or y, its scale, values and pixels of both ends. Labels of a fixed axis only move.
  const drawAxis = (axis, part, twin) => {
    const [which, kind, ...rest] = axis.dataset.axis.split(" ");
    const [low, high, first, last] = rest.map(Number);
    const [from, to] = part[which], across = which === "x";
    const whole = from === 0 && to === 1;
    const moved = (pixel) => first + ((pixel - first) / (last - first) - from) / (to - from) * (last - first);
    const groups = [...axis.querySelectorAll("[data-part]")];
    for (const group of groups) once(group, "all", () => [...group.children].map((one) => one.cloneNode(true)));
    if (whole) { groups.forEach((group) => group.replaceChildren(...group.all.map((one) => one.cloneNode(true)))); return; }
    const offset = (group) => (group.dataset.part === "label" && !across ? 3 : 0);
    const value = (fraction) => (kind === "log" ? low * (high / low) ** fraction : low + fraction * (high - low));
    const scale = kind === "grid" ? twin : { kind, low, high, value };
    for (const group of groups) {
      const proto = group.all[0];
      if (!proto) continue;
      let places;
      if (kind === "fixed" || !scale) {
        places = group.all.map((one) => { const at = placeOf(one); return [moved(at[across ? 0 : 1] - offset(group)), one.textContent]; });
      } else {
        const bottom = scale.value(from), top = scale.value(to);
        const ticks = ticksOf(scale.kind, bottom, top, across ? Math.max(2, Math.abs(last - first) / 90) : 5);
        places = ticks.map((tick) => [first + (last - first) * (scale.kind === "log" ? Math.log(tick / bottom) / Math.log(top / bottom) : (tick - bottom) / (top - bottom)), labelled(scale.kind, tick, ticks)]);
      }
      const at = placeOf(proto), inside = ([pixel]) => pixel >= Math.min(first, last) - 1 && pixel <= Math.max(first, last) + 1;
      group.replaceChildren(...places.filter(inside).map(([pixel, text]) => {
        const made = proto.cloneNode(true);
        put(made, across ? pixel : at[0], across ? at[1] : pixel + offset(group));
        if (group.dataset.part === "label") made.textContent = text;
        return made;
      }));
    }
  };
  const redraw = (chart) => {
    const part = partOf(chart), axes = [...chart.querySelectorAll("[data-axis]")];
    const side = axes.map((axis) => axis.dataset.axis.split(" ")).find(([which, kind]) => which === "y" && (kind === "linear" || kind === "log"));
    const [low, high] = side ? side.slice(2, 4).map(Number) : [0, 1];
    const twin = side && { kind: side[1], low, high, value: (one) => (side[1] === "log" ? low * (high / low) ** one : low + one * (high - low)) };
    axes.forEach((axis) => drawAxis(axis, part, twin));
    chart.querySelectorAll("[data-marks]").forEach((group) => moveMarks(group, part));
    chart.querySelector(".cursor")?.removeAttribute("d");
    const figure = chart.closest("figure"), whole = [...figure.querySelectorAll("svg.chart")].every((one) => isWhole(partOf(one)));
    figure.classList.toggle("zoomed", !whole);
    figure.querySelectorAll(".zoom button[data-needs]").forEach((one) => { one.disabled = whole; });
  };
  // Panels with the same axes are looked at together; `each` panel of a figure with axes of their own by itself.
  const together = (chart) => {
    const figure = chart.closest("figure");
    return figure.dataset.zoom === "each" ? [chart] : [...figure.querySelectorAll("svg.chart")];
  };
  const NARROWEST = 0.01;
  const within = (from, to) => {
    const size = Math.min(1, Math.max(NARROWEST, to - from)), start = Math.max(0, Math.min(1 - size, from + (to - from - size) / 2));
    return [start, start + size];
  };
  const look = (chart, x, y) => {
    for (const one of together(chart)) {
      parts.set(one, { x: within(...x), y: one.closest("figure").dataset.zoom === "x" ? [0, 1] : within(...y) });
      redraw(one);
    }
  };
  const reset = (chart) => together(chart).forEach((one) => { parts.delete(one); redraw(one); });
  const about = ([from, to], factor) => { const middle = (from + to) / 2; return [middle - (middle - from) * factor, middle + (to - middle) * factor]; };
  const nearer = (chart, factor) => { const { x, y } = partOf(chart); look(chart, about(x, factor), about(y, factor)); };
  const pan = (chart, dx, dy) => {
    const { x, y } = partOf(chart), wide = x[1] - x[0], tall = y[1] - y[0];
    look(chart, x.map((one) => one + dx * wide), y.map((one) => one + dy * tall));
  };
  for (const figure of document.querySelectorAll("figure[data-zoom]")) {
    const bar = document.createElement("p");
    bar.className = "zoom";
    const charts = [...figure.querySelectorAll("svg.chart")];
    const every = (act) => () => (figure.dataset.zoom === "each" ? charts : charts.slice(0, 1)).forEach(act);
    const add = (text, name, needs, act) => {
      const made = document.createElement("button");
      made.type = "button";
      made.textContent = text;
      made.setAttribute("aria-label", name);
      if (needs) { made.dataset.needs = ""; made.disabled = true; }
      made.addEventListener("click", act);
      bar.append(made);
    };
    add("+", "Zoom in", false, every((one) => nearer(one, 0.5)));
    add("\u2212", "Zoom out", true, every((one) => nearer(one, 2)));
    add("\u2190", "Earlier or to the left", true, every((one) => pan(one, -0.5, 0)));
    add("\u2192", "Later or to the right", true, every((one) => pan(one, 0.5, 0)));
    if (figure.dataset.zoom !== "x") {
      add("\u2191", "Up", true, every((one) => pan(one, 0, 0.5)));
      add("\u2193", "Down", true, every((one) => pan(one, 0, -0.5)));
    }
    add("Whole", "Show the whole figure", true, every(reset));
    const hint = document.createElement("span");
    hint.textContent = "drag over a part to look closer; keys + \u2212 0";
    bar.append(hint);
    figure.querySelector("figcaption").before(bar);
    for (const chart of charts) {
      const group = chart.querySelector("[data-marks]");
      if (!group) continue;
      let drag = null;
      // The plot in the picture's own units: of a figure with one time axis and several plots, the whole height.
      const [left, top, width, height] = group.dataset.marks.split(" ").map(Number);
      const [aside, down] = group.parentNode === chart ? [0, 0] : placeOf(group.parentNode);
      const plot = () => (figure.dataset.zoom === "x" ? [left + aside, 0, width, chart.viewBox.baseVal.height] : [left + aside, top + down, width, height]);
      const fractions = (event) => {
        const box = chart.getBoundingClientRect(), view = chart.viewBox.baseVal, [x0, y0, wide, tall] = plot();
        const x = ((event.clientX - box.left) / box.width * view.width - x0) / wide;
        const y = 1 - ((event.clientY - box.top) / box.height * view.height - y0) / tall;
        return [x, y].map((one) => Math.max(0, Math.min(1, one)));
      };
      const frame = document.createElementNS(chart.namespaceURI, "rect");
      frame.setAttribute("class", "frame");
      const outline = (from, to) => {
        const [x0, y0, wide, tall] = plot();
        const [x, y] = [0, 1].map((axis) => [Math.min(from[axis], to[axis]), Math.max(from[axis], to[axis])]);
        const box = { x: x0 + x[0] * wide, width: (x[1] - x[0]) * wide, y: y0 + (1 - y[1]) * tall, height: (y[1] - y[0]) * tall };
        if (figure.dataset.zoom === "x") Object.assign(box, { y: y0, height: tall });
        for (const [name, size] of Object.entries(box)) frame.setAttribute(name, size);
        chart.append(frame);
      };
      chart.addEventListener("pointerdown", (event) => {
        if (event.button !== 0) return;
        drag = { from: fractions(event), at: [event.clientX, event.clientY] };
        chart.setPointerCapture(event.pointerId);
      });
      chart.addEventListener("pointermove", (event) => { if (drag) outline(drag.from, fractions(event)); });
      chart.addEventListener("pointercancel", () => { drag = null; frame.remove(); });
      chart.addEventListener("pointerup", (event) => {
        if (!drag) return;
        const from = drag.from, to = fractions(event), far = [event.clientX - drag.at[0], event.clientY - drag.at[1]].map(Math.abs);
        drag = null;
        frame.remove();
        const { x, y } = partOf(chart);
        const picked = ([low, high], axis) => (far[axis] < 8 ? [low, high] : [Math.min(from[axis], to[axis]), Math.max(from[axis], to[axis])].map((one) => low + one * (high - low)));
        if (Math.max(...far) >= 8) look(chart, picked(x, 0), picked(y, 1));
      });
      chart.addEventListener("dblclick", () => reset(chart));
      chart.setAttribute("tabindex", "0");
      chart.addEventListener("keydown", (event) => {
        const keys = {
          "+": () => nearer(chart, 0.5), "=": () => nearer(chart, 0.5), "-": () => nearer(chart, 2), 0: () => reset(chart),
          ...(event.shiftKey || !chart.closest("[data-values]") ? { ArrowLeft: () => pan(chart, -0.25, 0), ArrowRight: () => pan(chart, 0.25, 0), ArrowUp: () => pan(chart, 0, 0.25), ArrowDown: () => pan(chart, 0, -0.25) } : {}),
        };
        const moving = event.key.startsWith("Arrow");
        if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey || (moving && !parts.has(chart))) return;
        event.preventDefault();
        keys[event.key]();
      });
    }
  }
  addEventListener("beforeprint", () => [...parts.keys()].forEach(reset));
  return { shown };
})();
