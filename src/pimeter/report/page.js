
"use strict";
// Every number here was computed by `measure`: the script looks it up at the slider's stop and draws it.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { curves, sample } = data;
  const byId = (id) => document.getElementById(id);
  const slider = byId("level");
  const asked = curves.levels.indexOf(data.confidence_level);
  let at = asked;

  const number = (value, digits = 4) => {
    if (value === null) return "not known";
    const text = Number(value.toPrecision(digits));
    if (value < 1 && text >= 1) return number(value, digits + 1);  // a fraction below 1 is not shown as 1
    const size = Math.abs(text);
    return size !== 0 && (size >= 1e6 || size < 1e-4) ? text.toExponential().replace("e+", "e") : String(text);
  };
  // More digits where these would make 100 of a fraction below 1.
  const hundredths = (fraction, digits = 4) =>
    fraction < 1 && Number((100 * fraction).toPrecision(digits)) >= 100 ? hundredths(fraction, digits + 1) : number(100 * fraction, digits);
  const percent = (fraction, digits = 4) => (fraction === null ? "not known" : `${hundredths(fraction, digits)} %`);
  const range = (low, high) => (low === null || high === null ? "not known" : `${hundredths(low)} to ${hundredths(high)} %`);
  const counted = (n, noun) => `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;
  const levelText = (i) => percent(curves.levels[i]);

  // Drawing.
  const NARROW = 430;
  const SVG = "http://www.w3.org/2000/svg";
  const element = (parent, name, attributes = {}, text = null) => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== null) made.textContent = text;
    parent.append(made);
    return made;
  };
  const scale = (from, to, start, end) => {
    const factor = to === from ? 0 : (end - start) / (to - from);
    return (value) => start + (value - from) * factor;
  };
  const ticks = (from, to, count) => {
    const raw = (to - from) / Math.max(count, 1);
    // Values that differ by rounding alone: integers times such steps cannot be told apart.
    if (!(raw > 1e-12 * Math.max(Math.abs(from), Math.abs(to)))) return [from];
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((k) => k * power).find((k) => k >= raw);
    const found = [];
    for (let i = Math.ceil(from / step - 1e-9); i * step <= to + step * 1e-9; i += 1) found.push(i * step);
    return found;
  };
  // Values with their texts, in as many digits as it takes to tell them apart.
  const named = (values, digits = 4) => {
    const texts = values.map((value) => number(value, digits));
    return new Set(texts).size < values.length && digits < 15 ? named(values, digits + 1) : values.map((value, i) => [value, texts[i]]);
  };
  const shorten = (text, longest) => {
    const signs = Array.from(text.replace(/\s+/g, " "));
    return signs.length <= longest ? signs.join("") : `${signs.slice(0, longest - 1).join("")}…`;
  };

  // A plot with axes: `x` and `y` map values to places within it.
  const plot = (id, height, margin, x, y, labels) => {
    const figure = byId(id);
    const svg = figure.querySelector("svg");
    const width = Math.max(260, Math.round(svg.getBoundingClientRect().width || 520));
    svg.replaceChildren();
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const extra = labels.y && width < NARROW ? 16 : 0;  // the key gets a line of its own
    const [left, right, top, bottom] = [margin.left, width - margin.right, margin.top + extra, height - margin.bottom];
    const made = { svg, keyLine: 12 + extra, left, right, top, bottom, x: scale(...x, left, right), y: y && scale(...y, bottom, top) };
    const clip = element(element(svg, "defs"), "clipPath", { id: `clip-${id}` });
    element(clip, "rect", { x: left, y: top, width: right - left, height: bottom - top });
    for (const [value, text] of named(ticks(...x, Math.max(2, Math.floor((right - left) / 70))))) {
      if (labels.noX) break;
      element(svg, "line", { class: "axis", x1: made.x(value), x2: made.x(value), y1: top, y2: bottom });
      element(svg, "text", { x: made.x(value), y: bottom + 16, "text-anchor": "middle" }, text);
    }
    for (const [value, text] of y && !labels.noY ? named(ticks(...y, Math.floor((bottom - top) / 45))) : []) {
      element(svg, "line", { class: "axis", x1: left, x2: right, y1: made.y(value), y2: made.y(value) });
      element(svg, "text", { x: left - 7, y: made.y(value) + 4, "text-anchor": "end" }, text);
    }
    element(svg, "text", { x: (left + right) / 2, y: height - 4, "text-anchor": "middle" }, labels.x);
    if (labels.y) element(svg, "text", { x: 2, y: 12 }, labels.y);
    made.inner = element(svg, "g", { "clip-path": `url(#clip-${id})` });
    made.says = (text) => {
      figure.querySelector("figcaption").textContent = text;
      svg.setAttribute("aria-label", text);
    };
    return made;
  };
  const key = (made, entries) => {
    let place = made.right;
    for (const [kind, text] of entries.reverse()) {
      const label = element(made.svg, "text", { x: place, y: made.keyLine, "text-anchor": "end" }, text);
      const middle = made.keyLine - 4;
      place -= label.getComputedTextLength() + 9;
      if (kind === "cross") cross(made.svg, place, middle);
      else if (kind === "learned") element(made.svg, "path", { class: kind, d: `M${place - 6} ${middle + 5}h12l-6 -11z` });
      else element(made.svg, kind === "in" ? "circle" : "rect", kind === "in" ? { class: "in", cx: place, cy: middle, r: 4 } : { class: kind, x: place - 5, y: middle - 5, width: 10, height: 10 });
      place -= 16;
    }
  };
  const cross = (parent, x, y) =>
    element(parent, "path", { class: "out-line", "stroke-width": 2, d: `M${x - 3.5} ${y - 3.5}l7 7m0 -7l-7 7` });
  const dot = (parent, x, y) => element(parent, "circle", { class: "in", cx: x, cy: y, r: 2.8, "fill-opacity": 0.75 });

  const widest = curves.margin[Math.max(0, curves.levels.findLastIndex((level) => level <= 0.99))];
  const spread = (values, fraction = 0.04) => {
    let [low, high] = [Math.min(...values), Math.max(...values)];
    if (low === high) [low, high] = [low - Math.max(Math.abs(low), 1) / 2, high + Math.max(Math.abs(high), 1) / 2];
    return [low - fraction * (high - low), high + fraction * (high - low)];
  };
  const MARGIN = { left: 54, right: 12, top: 26, bottom: 40 };
  const residuals = sample.y_true.map((value, i) => value - sample.y_pred[i]);
  // Rows of the sample are in random order.
  const few = sample.y_pred.map((_, i) => i).slice(0, 60).sort((a, b) => sample.y_pred[a] - sample.y_pred[b]);
  const subgroups = curves.subgroups.flatMap((division) =>
    division.labels.map((label, i) => ({ ...division, label, own: i })));
  const known = subgroups.filter((one) => one.rows[one.own] > 0);
  const isFirst = (one, i) => i === 0 || known[i - 1].of !== one.of;
  const heads = known.filter(isFirst).length;

  const drawResiduals = () => {
    const r = curves.margin[at];
    const most = Math.max(...sample.bin_counts, 1);
    const edges = sample.bin_edges;
    const bounds = spread([edges[0], edges[edges.length - 1], -widest, widest], 0.02);
    const made = plot("residuals", 270, MARGIN, bounds, [0, 1.08 * most], { x: "residual: target minus prediction", y: "rows" });
    const { inner, x, y } = made;
    element(element(made.svg, "clipPath", { id: "within" }), "rect", { x: x(-r), y: 0, width: Math.max(x(r) - x(-r), 0), height: 300 });
    const all = element(inner, "g", { class: "out" });
    const inside = element(element(inner, "g", { "clip-path": "url(#within)" }), "g", { class: "in" });
    sample.bin_counts.forEach((count, i) => {
      const box = { x: x(edges[i]) + 0.4, width: Math.max(x(edges[i + 1]) - x(edges[i]) - 0.8, 0.5), y: y(count), height: y(0) - y(count) };
      element(all, "rect", box);
      element(inside, "rect", box);
    });
    for (const bound of [-r, r]) element(inner, "line", { class: "rule", x1: x(bound), x2: x(bound), y1: made.top, y2: made.bottom });
    const quantiles = [curves.lower_quantile[at], curves.upper_quantile[at]];
    for (const value of quantiles) element(inner, "path", { class: "learned", d: `M${x(value) - 6} ${made.bottom}h12l-6 -11z` });
    key(made, [["in", "within"], ["out", "outside"], ["learned", "learned quantiles"]]);
    const beyond = sample.n_beyond ? ` ${counted(sample.n_beyond, "residual")} ${sample.n_beyond === 1 ? "is" : "are"} farther out than the bars.` : "";
    const tail = percent((1 - curves.levels[at]) / 2, 3);
    made.says(`Dashed: ±${number(r, 3)}. The neuron's quantiles, which leave ${tail} on either side, are ${number(quantiles[0], 3)} and ${number(quantiles[1], 3)}.${beyond}`);
  };

  const drawLevels = () => {
    const start = curves.levels[0];
    const lowest = Math.min(start, ...[...curves.coverage_lower, ...curves.coverage].filter((value) => value !== null));
    const made = plot("levels", 270, MARGIN, [100 * start, 100], [100 * lowest, 100], { x: "level asked for, %", y: "rows covered, %" });
    const { inner, x, y } = made;
    const line = (values) => values.map((value, i) => (value === null ? "" : `${x(100 * curves.levels[i])} ${y(100 * value)}`)).filter(Boolean).join("L");
    const back = curves.levels.map((level, i) => `${x(100 * level)} ${y(100 * curves.coverage_lower[i])}`).reverse().join("L");
    if (curves.coverage_lower[at] !== null) element(inner, "path", { class: "band", d: `M${line(curves.coverage_upper)}L${back}Z` });
    element(inner, "path", { class: "rule", d: `M${x(100 * start)} ${y(100 * start)}L${x(100)} ${y(100)}` });
    const covered = curves.coverage[at];
    if (covered !== null) {
      element(inner, "path", { class: "in-line", "stroke-width": 2.5, d: `M${line(curves.coverage)}` });
      element(inner, "line", { class: "in-line", x1: x(100 * curves.levels[at]), x2: x(100 * curves.levels[at]), y1: made.bottom, y2: y(100 * covered), "stroke-dasharray": "2 3" });
      element(made.svg, "circle", { class: "in", cx: x(100 * curves.levels[at]), cy: y(100 * covered), r: 6 });
    }
    key(made, [["in", "measured"], ["band", "true coverage, 90 % confidence"]]);
    made.says(covered === null ? "One row cannot be cross-fitted." : `${percent(covered)} of rows are covered where ${levelText(at)} is asked for. Dashed: exactly as asked for.`);
  };

  const drawSubgroups = (id, bounds, rule, value, whiskers, label, says) => {
    const width = byId(id).querySelector("svg").getBoundingClientRect().width || 520;
    const left = Math.min(190, Math.round(0.4 * width));
    const row = known.length > 12 ? 22 : 28;
    const made = plot(id, 60 + row * (known.length + heads), { ...MARGIN, left, top: 12 }, bounds, null, { x: label });
    const { x } = made;
    element(made.svg, "line", { class: "rule", x1: x(rule), x2: x(rule), y1: made.top, y2: made.bottom });
    let y = made.top - 0.5 * row;
    known.forEach((one, i) => {
      if (isFirst(one, i)) {
        y += row;
        element(made.svg, "text", { class: "head", x: left - 10, y: y + 5, "text-anchor": "end" }, shorten(one.of === "by" ? "by category" : `by ${one.of}`, Math.floor(left / 7.4)));
      }
      y += row;
      const name = element(made.svg, "text", { x: left - 10, y: y + 4, "text-anchor": "end" }, shorten(one.label, Math.floor(left / 7.4)));
      element(name, "title", {}, `${shorten(one.label, 200)}: ${counted(one.rows[one.own], "row")}`);
      const held = value(one);
      if (held === null) return;
      const bounds = whiskers(one);
      const isOff = bounds && (bounds[0] > rule || bounds[1] < rule);
      const kind = isOff ? "out" : "in";
      if (bounds) element(made.inner, "line", { class: `${kind}-line`, "stroke-width": 5, "stroke-opacity": 0.4, x1: x(bounds[0]), x2: x(bounds[1]), y1: y, y2: y });
      else element(made.inner, "line", { class: "in-line", "stroke-width": 5, "stroke-opacity": 0.4, x1: x(0), x2: x(held), y1: y, y2: y });
      if (isOff) element(made.svg, "path", { class: "out", d: `M${x(held) - 7} ${y}l7 -7l7 7l-7 7z` });
      else element(made.svg, "circle", { class: "in", cx: x(held), cy: y, r: 5.5 });
    });
    made.says(says);
  };
  const drawCovered = () => {
    const level = curves.levels[at];
    const judged = known.filter((one) => one.coverage[one.own][at] !== null);
    const off = judged.filter((one) => one.lower[one.own][at] > level || one.upper[one.own][at] < level);
    const lowest = Math.min(...known.map((one) => one.lower[one.own][at] ?? 1), level);
    const from = Math.max(0, Math.floor(20 * lowest) * 5 - 2);
    const some = off.length === 0 ? "None of the subgroups shown is" : `${off.length} of ${counted(known.length, "subgroup")} (diamonds) ${off.length === 1 ? "is" : "are"}`;
    const all = judged.length === 0 ? "One row cannot be cross-fitted." : `${some} farther from the level than chance explains.`;
    drawSubgroups("covered", [from, 101], 100 * level, (one) => one.coverage[one.own][at] === null ? null : 100 * one.coverage[one.own][at],
      (one) => one.coverage[one.own][at] === null ? null : [100 * one.lower[one.own][at], 100 * one.upper[one.own][at]],
      "rows covered, %", `${all} Dashed: ${levelText(at)}; bars hold for all subgroups together.`);
  };
  const drawWidths = () => {
    const most = Math.max(...known.map((one) => one.margin[one.own][at] ?? 0), curves.margin[at]);
    drawSubgroups("widths", [0, 1.06 * (most || 1)], curves.margin[at], (one) => one.margin[one.own][at], () => null,
      "margin of the subgroup alone", `Dashed: ±${number(curves.margin[at], 3)}, the margin of all rows. Subgroups with a larger one tend to be covered less.`);
  };

  const shownRows = residuals.length === data.n_rows ? (data.n_rows === 1 ? "the only row" : `all ${data.n_rows.toLocaleString("en")} rows`) : `${residuals.length} of ${data.n_rows.toLocaleString("en")} rows`;
  const drawScatter = () => {
    const r = curves.margin[at];
    const made = plot("scatter", 300, { ...MARGIN, left: 60 }, spread(sample.y_pred), spread([...residuals, -widest, widest]), { x: "prediction", y: "residual" });
    const { inner, x, y } = made;
    element(inner, "rect", { class: "fill", x: made.left, width: made.right - made.left, y: y(r), height: Math.max(y(-r) - y(r), 1) });
    element(inner, "line", { class: "zero", x1: made.left, x2: made.right, y1: y(0), y2: y(0) });
    let outside = 0;
    residuals.forEach((residual, i) => {
      const place = [inner, x(sample.y_pred[i]), y(residual)];
      if (Math.abs(residual) <= r) dot(...place);
      else { cross(...place); outside += 1; }
    });
    key(made, [["in", "inside"], ["cross", "outside"]]);
    made.says(`${outside} of the ${counted(residuals.length, "residual")} shown ${outside === 1 ? "lies" : "lie"} outside of ±${number(r, 3)} (${shownRows}).`);
  };

  const drawSample = () => {
    const r = curves.margin[at];
    const values = few.flatMap((i) => [sample.y_true[i], sample.y_pred[i] - widest, sample.y_pred[i] + widest]);
    const made = plot("sample", 300, { ...MARGIN, left: 60, bottom: 24 }, [-1, few.length], spread(values), { x: "from the lowest to the highest prediction", y: "target", noX: true });
    const { inner, x, y } = made;
    const thick = Math.max(2, Math.min(7, 0.55 * (x(1) - x(0))));
    let outside = 0;
    few.forEach((i, place) => {
      const prediction = sample.y_pred[i];
      element(inner, "line", { class: "in-line", "stroke-opacity": 0.35, "stroke-width": thick, x1: x(place), x2: x(place), y1: y(prediction - r), y2: y(prediction + r) });
      element(inner, "line", { class: "ink", x1: x(place) - thick / 2 - 1, x2: x(place) + thick / 2 + 1, y1: y(prediction), y2: y(prediction), "stroke-width": 1.5 });
      if (Math.abs(residuals[i]) <= r) dot(inner, x(place), y(sample.y_true[i]));
      else { cross(inner, x(place), y(sample.y_true[i])); outside += 1; }
    });
    key(made, [["in", "inside"], ["cross", "outside"]]);
    made.says(`${few.length} of ${counted(data.n_rows, "row")} with ${data.n_rows === 1 ? "its" : "their"} interval; ${counted(outside, "target")} ${outside === 1 ? "lies" : "lie"} outside.`);
  };

  // A meter whose needle shows the level.
  const drawGauge = () => {
    const svg = byId("gauge");
    svg.replaceChildren();
    const turn = (fraction) => Math.PI * (1 - (fraction - 0.5) / 0.5);
    const place = (fraction, r) => `${30 + r * Math.cos(turn(fraction))} ${31 - r * Math.sin(turn(fraction))}`;
    element(svg, "path", { class: "soft", "stroke-width": 3, d: `M${place(0.5, 26)}A26 26 0 0 1 ${place(1, 26)}` });
    if (curves.coverage_lower[at] !== null) element(svg, "path", { class: "in-line", "stroke-width": 5, d: `M${place(Math.max(curves.coverage_lower[at], 0.5), 26)}A26 26 0 0 1 ${place(Math.max(curves.coverage_upper[at], 0.5), 26)}` });
    element(svg, "path", { class: "ink", "stroke-width": 2.5, "stroke-linecap": "round", d: `M30 31L${place(Math.max(curves.levels[at], 0.5), 20)}` });
  };

  const setNumber = (id, value, text) => {
    byId(id).textContent = text;
    byId(id).dataset.value = value;
  };
  const fill = () => {
    byId("headline").querySelector("span").textContent = curves.headlines[at].claim;
    byId("headline").querySelector("small").textContent = curves.headlines[at].evidence;
    byId("shown").textContent = levelText(at);
    byId("code-level").textContent = curves.levels[at];
    slider.setAttribute("aria-valuetext", levelText(at));
    setNumber("margin", curves.margin[at], `±${number(curves.margin[at])}`);
    setNumber("coverage", curves.coverage[at], percent(curves.coverage[at]));
    setNumber("guaranteed", curves.guaranteed_level[at], percent(curves.guaranteed_level[at]));
    byId("range").textContent = range(curves.coverage_lower[at], curves.coverage_upper[at]);
    Object.assign(byId("range").dataset, { low: curves.coverage_lower[at], high: curves.coverage_upper[at] });
    const moving = {
      coverage: [curves.coverage, curves.coverage_lower, curves.coverage_upper],
      mean_width: [curves.margin.map((r) => 2 * r), curves.width_lower, curves.width_upper],
      interval_score: [curves.interval_score, curves.interval_score_lower, curves.interval_score_upper],
    };
    for (const row of byId("scores").querySelectorAll("[data-score]")) {
      const [value, low, high] = moving[row.dataset.score].map((held) => held[at]);
      row.cells[1].textContent = number(value);
      row.cells[2].textContent = low === null ? number(null) : `${number(low)} to ${number(high)}`;
      row.querySelector(".at").textContent = `at ${levelText(at)}`;
    }
    [...byId("subgroups").tBodies[0].rows].forEach((row, i) => {
      const { own, coverage, lower, upper, margin } = subgroups[i];
      row.cells[2].textContent = percent(coverage[own][at]);
      row.cells[3].textContent = range(lower[own][at], upper[own][at]);
      row.cells[4].textContent = `±${number(margin[own][at])}`;
    });
    for (const button of byId("jumps").children) button.setAttribute("aria-pressed", String(Number(button.value) === at));
  };
  const draw = () => [drawResiduals, drawLevels, drawCovered, drawWidths, drawScatter, drawSample, drawGauge].forEach((one) => one());
  const move = (to) => {
    at = to;
    slider.value = String(at);
    fill();
    draw();
  };

  for (const level of [...new Set([0.8, 0.9, 0.95, 0.99, data.confidence_level])].sort((a, b) => a - b)) {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", value: String(curves.levels.indexOf(level)), textContent: percent(level) });
    button.addEventListener("click", () => move(Number(button.value)));
    byId("jumps").append(button);
  }
  slider.addEventListener("input", () => move(Number(slider.value)));
  byId("control").addEventListener("submit", (event) => event.preventDefault());
  window.addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => { one.open = true; }));
  let width = 0;
  new ResizeObserver(() => {
    const now = byId("plots").clientWidth;
    if (now !== width) { width = now; requestAnimationFrame(draw); }
  }).observe(byId("plots"));
  move(asked);
})();
