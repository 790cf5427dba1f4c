"use strict";
const zoom = (() => {
  // Zoom: a figure shows a part of its axes, as fractions of them. Marks are moved, never stretched where they have a
  // size of their own; axes are redrawn from what the pen writes into them (see draw/axes.py).
  const EDGE_PX = 3, NAME_PX = 300, SINK_PX = 3.5;
  const WHOLE = { x: [0, 1], y: [0, 1] };
  const parts = new Map();
  const partOf = (chart) => parts.get(chart) ?? WHOLE;
  const isWhole = ({ x, y }) => x[0] === 0 && x[1] === 1 && y[0] === 0 && y[1] === 1;
  const shown = (chart) => { const [from, to] = partOf(chart).x; return { from, to }; };
  const once = (element, name, read) => (element[name] ??= read());
  const numbers = (element, ...names) => names.map((name) => Number(element.getAttribute(name) ?? 0));
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
  // Points and words keep their size and move; lines, areas and bars are stretched, but not their strokes, unless the
  // stroke is itself a measure (`data-grows`).
  const PLACE = /translate\(([^,]+),([^)]+)\)/;
  const mover = (mark) => {
    const by = (x, y) => { const [a, b] = numbers(mark, x, y); return (sx, sy, tx, ty) => { mark.setAttribute(x, (tx + sx * a).toFixed(1)); mark.setAttribute(y, (ty + sy * b).toFixed(1)); }; };
    if (mark.tagName === "circle") return by("cx", "cy");
    if (mark.tagName === "text") return by("x", "y");
    const found = PLACE.exec(mark.getAttribute("transform") ?? "");
    if (found) return (sx, sy, tx, ty) => mark.setAttribute("transform", `translate(${(tx + sx * found[1]).toFixed(1)},${(ty + sy * found[2]).toFixed(1)})`);
    if (mark.dataset.grows === undefined) mark.setAttribute("vector-effect", "non-scaling-stroke");
    return (sx, sy, tx, ty) => mark.setAttribute("transform", `matrix(${sx} 0 0 ${sy} ${tx} ${ty})`);
  };
  const moveMarks = (group, { x: [x0, x1], y: [y0, y1] }) => {
    const [left, top, width, height] = group.dataset.marks.split(" ").map(Number);
    clipped(group, [left - EDGE_PX, top - EDGE_PX, width + EDGE_PX + (group.dataset.words === undefined ? EDGE_PX : NAME_PX), height + 2 * EDGE_PX]);
    const sx = 1 / (x1 - x0), sy = 1 / (y1 - y0), tx = left - sx * (left + x0 * width), ty = top - sy * (top + (1 - y1) * height);
    for (const mark of group.querySelectorAll("path, circle, text, rect")) once(mark, "mover", () => mover(mark))(sx, sy, tx, ty);
  };
  // Ticks and labels by the rules of draw/scales.py.
  const ROUNDING = 1e-9, NEARLY = 0.8;
  const stepOf = (span, most) => {
    const rough = span / most, power = 10 ** Math.floor(Math.log10(rough));
    const steps = [1, 2, 5, 10].map((one) => one * power), step = steps.find((one) => one >= rough * NEARLY) ?? steps[3];
    return step <= span ? step : steps.findLast((one) => one <= span) ?? step;
  };
  const ticksOf = (kind, low, high, most) => {
    if (kind === "log") {
      const found = [];
      for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) for (const mantissa of [1, 2, 5]) {
        const tick = Number(`${mantissa}e${power}`);
        if (tick >= low && tick <= high) found.push(tick);
      }
      const decades = found.filter((tick) => tick.toExponential().startsWith("1"));
      if (found.length >= 3) return found.length <= 8 ? found : decades.filter((_, index) => index % Math.ceil(decades.length / 8) === 0);
    }
    const step = stepOf(high - low, kind === "log" ? Math.max(most, 4) : most), found = [];
    for (let index = Math.ceil(low / step - ROUNDING); index <= Math.floor(high / step + ROUNDING); index += 1) found.push(Math.min(Math.max(step * index, low), high));
    return found;
  };
  const labelsOf = (ticks, span) => {
    const gaps = ticks.slice(1).map((tick, index) => tick - ticks[index]), widest = Math.max(...gaps);
    const even = gaps.length > 0 && widest - Math.min(...gaps) <= 1e-6 * widest;
    const places = even ? Math.max(0, -Math.floor(Math.log10(gaps[0]) + ROUNDING)) : 0;
    const alone = ticks.length === 1 ? Math.min(8, Math.max(0, 1 - Math.floor(Math.log10(span)))) : null;
    const form = alone !== null ? { maximumFractionDigits: alone } : even ? { minimumFractionDigits: places, maximumFractionDigits: places } : { maximumSignificantDigits: 4 };
    return ticks.map((tick) => (tick === 0 ? "0" : tick.toLocaleString("en", form)).replace("-", "\u2212"));
  };
  // One axis: which of x or y, its kind, values and pixels of both ends, and how far its lines reach across.
  const drawAxis = (axis, part) => {
    const [which, kind, ...rest] = axis.dataset.axis.split(" ");
    const [low, high, first, last, near, far] = rest.map(Number);
    const [from, to] = part[which], across = which === "x", name = across ? "x" : "y";
    const [lines, group] = ["path", "[data-part=label]"].map((one) => axis.querySelector(one));
    if (!group?.children.length) return;
    const whole = once(axis, "whole", () => ({ labels: [...group.children].map((one) => one.cloneNode(true)), path: lines?.getAttribute("d") }));
    const all = whole.labels;
    if (from === 0 && to === 1) { group.replaceChildren(...all.map((one) => one.cloneNode(true))); lines?.setAttribute("d", whole.path); return; }
    const sink = across ? 0 : SINK_PX, value = (share) => (kind === "log" ? low * (high / low) ** share : low + share * (high - low));
    let places;
    if (kind === "fixed") {
      places = all.map((one) => [first + ((numbers(one, name)[0] - sink - first) / (last - first) - from) / (to - from) * (last - first), one]);
    } else {
      const bottom = value(from), top = value(to), ticks = ticksOf(kind, bottom, top, across ? Math.max(2, Math.abs(last - first) / 90) : 5);
      const labels = labelsOf(ticks, top - bottom), share = (tick) => (kind === "log" ? Math.log(tick / bottom) / Math.log(top / bottom) : (tick - bottom) / (top - bottom));
      places = ticks.map((tick, index) => { const made = all[0].cloneNode(true); made.textContent = labels[index]; return [first + (last - first) * share(tick), made]; });
    }
    const seen = places.filter(([pixel]) => pixel >= Math.min(first, last) - 1 && pixel <= Math.max(first, last) + 1);
    lines?.setAttribute("d", seen.map(([pixel]) => (across ? `M${pixel.toFixed(1)},${near}V${far}` : `M${near},${pixel.toFixed(1)}H${far}`)).join(""));
    group.replaceChildren(...seen.map(([pixel, label]) => { const made = label.cloneNode(true); made.setAttribute(name, (pixel + sink).toFixed(1)); return made; }));
  };
  const redraw = (chart) => {
    const part = partOf(chart);
    chart.querySelectorAll("[data-axis]").forEach((axis) => drawAxis(axis, part));
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
      const plot = () => (figure.dataset.zoom === "x" ? [left, 0, width, chart.viewBox.baseVal.height] : [left, top, width, height]);
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
  return { shown, ticksOf, labelsOf };
})();
