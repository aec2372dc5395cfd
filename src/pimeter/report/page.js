
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
    if (value < 1 && text >= 1) return number(value, digits + 1);  // a share below 1 is not shown as 1
    const size = Math.abs(text);
    return size !== 0 && (size >= 1e6 || size < 1e-4) ? text.toExponential().replace("e+", "e") : String(text);
  };
  // More digits where these would make 100 of a share below 1.
  const hundredths = (share, digits = 4) =>
    share < 1 && Number((100 * share).toPrecision(digits)) >= 100 ? hundredths(share, digits + 1) : number(100 * share, digits);
  const percent = (share, digits = 4) => (share === null ? "not known" : `${hundredths(share, digits)} %`);
  const range = (low, high) => (low === null || high === null ? "not known" : `${hundredths(low)} to ${hundredths(high)} %`);
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
    // Values that differ by rounding alone: whole numbers of such steps cannot be told apart.
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

  // A picture with axes: `x` and `y` map values to places within it.
  const picture = (id, height, margin, x, y, labels) => {
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

  const widest = curves.radius[Math.max(0, curves.levels.findLastIndex((level) => level <= 0.99))];
  const spread = (values, share = 0.04) => {
    let [low, high] = [Math.min(...values), Math.max(...values)];
    if (low === high) [low, high] = [low - Math.max(Math.abs(low), 1) / 2, high + Math.max(Math.abs(high), 1) / 2];
    return [low - share * (high - low), high + share * (high - low)];
  };
  const MARGIN = { left: 54, right: 12, top: 26, bottom: 40 };
  const errors = sample.y_true.map((value, i) => value - sample.y_pred[i]);
  // Rows of the sample are in random order.
  const few = sample.y_pred.map((_, i) => i).slice(0, 60).sort((a, b) => sample.y_pred[a] - sample.y_pred[b]);
  const parts = curves.parts.flatMap((part) =>
    part.labels.map((label, i) => ({ ...part, label, own: i })));
  const known = parts.filter((part) => part.rows[part.own] > 0);
  const isFirst = (part, i) => i === 0 || known[i - 1].of !== part.of;
  const heads = known.filter(isFirst).length;

  const drawErrors = () => {
    const r = curves.radius[at];
    const most = Math.max(...sample.bin_counts, 1);
    const edges = sample.bin_edges;
    const ends = spread([edges[0], edges[edges.length - 1], -widest, widest], 0.02);
    const made = picture("errors", 270, MARGIN, ends, [0, 1.08 * most], { x: "error: target minus prediction", y: "rows" });
    const { inner, x, y } = made;
    element(element(made.svg, "clipPath", { id: "within" }), "rect", { x: x(-r), y: 0, width: Math.max(x(r) - x(-r), 0), height: 300 });
    const all = element(inner, "g", { class: "out" });
    const inside = element(element(inner, "g", { "clip-path": "url(#within)" }), "g", { class: "in" });
    sample.bin_counts.forEach((count, i) => {
      const box = { x: x(edges[i]) + 0.4, width: Math.max(x(edges[i + 1]) - x(edges[i]) - 0.8, 0.5), y: y(count), height: y(0) - y(count) };
      element(all, "rect", box);
      element(inside, "rect", box);
    });
    for (const end of [-r, r]) element(inner, "line", { class: "rule", x1: x(end), x2: x(end), y1: made.top, y2: made.bottom });
    const quantiles = [curves.lower_quantile[at], curves.upper_quantile[at]];
    for (const value of quantiles) element(inner, "path", { class: "learned", d: `M${x(value) - 6} ${made.bottom}h12l-6 -11z` });
    key(made, [["in", "within"], ["out", "outside"], ["learned", "learned quantiles"]]);
    const beyond = sample.n_beyond ? ` ${sample.n_beyond.toLocaleString("en")} errors are farther out than the bars reach.` : "";
    const tail = percent((1 - curves.levels[at]) / 2, 3);
    made.says(`Dashed: ±${number(r, 3)}. The neuron's quantiles, which leave ${tail} on either side, are ${number(quantiles[0], 3)} and ${number(quantiles[1], 3)}.${beyond}`);
  };

  const drawLevels = () => {
    const start = curves.levels[0];
    const lowest = Math.min(start, ...curves.coverage_low, ...curves.coverage.filter((value) => value !== null));
    const made = picture("levels", 270, MARGIN, [100 * start, 100], [100 * lowest, 100], { x: "level asked for, %", y: "rows covered, %" });
    const { inner, x, y } = made;
    const line = (values) => values.map((value, i) => (value === null ? "" : `${x(100 * curves.levels[i])} ${y(100 * value)}`)).filter(Boolean).join("L");
    const back = curves.levels.map((level, i) => `${x(100 * level)} ${y(100 * curves.coverage_low[i])}`).reverse().join("L");
    element(inner, "path", { class: "band", d: `M${line(curves.coverage_high)}L${back}Z` });
    element(inner, "path", { class: "rule", d: `M${x(100 * start)} ${y(100 * start)}L${x(100)} ${y(100)}` });
    const covered = curves.coverage[at];
    if (covered !== null) {
      element(inner, "path", { class: "in-line", "stroke-width": 2.5, d: `M${line(curves.coverage)}` });
      element(inner, "line", { class: "in-line", x1: x(100 * curves.levels[at]), x2: x(100 * curves.levels[at]), y1: made.bottom, y2: y(100 * covered), "stroke-dasharray": "2 3" });
      element(made.svg, "circle", { class: "in", cx: x(100 * curves.levels[at]), cy: y(100 * covered), r: 6 });
    }
    key(made, [["in", "measured"], ["band", "true share, 90 % confidence"]]);
    made.says(covered === null ? "One row cannot be cross-fitted." : `${percent(covered)} of rows are covered where ${levelText(at)} is asked for. Dashed: exactly as asked for.`);
  };

  const drawParts = (id, ends, rule, value, whiskers, label, says) => {
    const width = byId(id).querySelector("svg").getBoundingClientRect().width || 520;
    const left = Math.min(190, Math.round(0.4 * width));
    const row = known.length > 12 ? 22 : 28;
    const made = picture(id, 60 + row * (known.length + heads), { ...MARGIN, left, top: 12 }, ends, null, { x: label });
    const { x } = made;
    element(made.svg, "line", { class: "rule", x1: x(rule), x2: x(rule), y1: made.top, y2: made.bottom });
    let y = made.top - 0.5 * row;
    known.forEach((part, i) => {
      if (isFirst(part, i)) {
        y += row;
        element(made.svg, "text", { class: "head", x: left - 10, y: y + 5, "text-anchor": "end" }, part.of === "prediction" ? "by prediction" : "by category");
      }
      y += row;
      const name = element(made.svg, "text", { x: left - 10, y: y + 4, "text-anchor": "end" }, shorten(part.label, Math.floor(left / 7.4)));
      element(name, "title", {}, `${shorten(part.label, 200)}: ${part.rows[part.own].toLocaleString("en")} rows`);
      const held = value(part);
      if (held === null) return;
      const reach = whiskers(part);
      const isOff = reach && (reach[0] > rule || reach[1] < rule);
      const kind = isOff ? "out" : "in";
      if (reach) element(made.inner, "line", { class: `${kind}-line`, "stroke-width": 5, "stroke-opacity": 0.4, x1: x(reach[0]), x2: x(reach[1]), y1: y, y2: y });
      else element(made.inner, "line", { class: "in-line", "stroke-width": 5, "stroke-opacity": 0.4, x1: x(0), x2: x(held), y1: y, y2: y });
      if (isOff) element(made.svg, "path", { class: "out", d: `M${x(held) - 7} ${y}l7 -7l7 7l-7 7z` });
      else element(made.svg, "circle", { class: "in", cx: x(held), cy: y, r: 5.5 });
    });
    made.says(says);
  };
  const drawCovered = () => {
    const level = curves.levels[at];
    const off = known.filter((part) => part.low[part.own][at] > level || part.high[part.own][at] < level);
    const lowest = Math.min(...known.map((part) => part.low[part.own][at] ?? 1), level);
    const from = Math.max(0, Math.floor(20 * lowest) * 5 - 2);
    const all = off.length === 0 ? "No part is farther from the level than chance explains." : `${off.length} of ${known.length} parts (diamonds) are farther from the level than chance explains.`;
    drawParts("covered", [from, 101], 100 * level, (part) => part.coverage[part.own][at] === null ? null : 100 * part.coverage[part.own][at],
      (part) => part.coverage[part.own][at] === null ? null : [100 * part.low[part.own][at], 100 * part.high[part.own][at]],
      "rows covered, %", `${all} Dashed: ${levelText(at)}; bars hold for all parts together.`);
  };
  const drawWidths = () => {
    const most = Math.max(...known.map((part) => part.radius[part.own][at] ?? 0), curves.radius[at]);
    drawParts("widths", [0, 1.06 * (most || 1)], curves.radius[at], (part) => part.radius[part.own][at], () => null,
      "radius of the part alone", `Dashed: ±${number(curves.radius[at], 3)}, the radius of all rows. Parts with a larger one are covered less.`);
  };

  const shownRows = errors.length === data.n_rows ? `all ${data.n_rows.toLocaleString("en")} rows` : `${errors.length} of ${data.n_rows.toLocaleString("en")} rows`;
  const drawScatter = () => {
    const r = curves.radius[at];
    const made = picture("scatter", 300, { ...MARGIN, left: 60 }, spread(sample.y_pred), spread([...errors, -widest, widest]), { x: "prediction", y: "error" });
    const { inner, x, y } = made;
    element(inner, "rect", { class: "fill", x: made.left, width: made.right - made.left, y: y(r), height: Math.max(y(-r) - y(r), 1) });
    element(inner, "line", { class: "zero", x1: made.left, x2: made.right, y1: y(0), y2: y(0) });
    let outside = 0;
    errors.forEach((error, i) => {
      const place = [inner, x(sample.y_pred[i]), y(error)];
      if (Math.abs(error) <= r) dot(...place);
      else { cross(...place); outside += 1; }
    });
    key(made, [["in", "inside"], ["cross", "outside"]]);
    made.says(`${outside} of the ${errors.length.toLocaleString("en")} errors shown lie outside of ±${number(r, 3)} (${shownRows}).`);
  };

  const drawSample = () => {
    const r = curves.radius[at];
    const values = few.flatMap((i) => [sample.y_true[i], sample.y_pred[i] - widest, sample.y_pred[i] + widest]);
    const made = picture("sample", 300, { ...MARGIN, left: 60, bottom: 24 }, [-1, few.length], spread(values), { x: "from the lowest to the highest prediction", y: "target", noX: true });
    const { inner, x, y } = made;
    const thick = Math.max(2, Math.min(7, 0.55 * (x(1) - x(0))));
    let outside = 0;
    few.forEach((i, place) => {
      const prediction = sample.y_pred[i];
      element(inner, "line", { class: "in-line", "stroke-opacity": 0.35, "stroke-width": thick, x1: x(place), x2: x(place), y1: y(prediction - r), y2: y(prediction + r) });
      element(inner, "line", { class: "ink", x1: x(place) - thick / 2 - 1, x2: x(place) + thick / 2 + 1, y1: y(prediction), y2: y(prediction), "stroke-width": 1.5 });
      if (Math.abs(errors[i]) <= r) dot(inner, x(place), y(sample.y_true[i]));
      else { cross(inner, x(place), y(sample.y_true[i])); outside += 1; }
    });
    key(made, [["in", "inside"], ["cross", "outside"]]);
    made.says(`${few.length} of ${data.n_rows.toLocaleString("en")} rows with their interval; ${outside} targets lie outside.`);
  };

  // A meter whose needle shows the level.
  const drawGauge = () => {
    const svg = byId("gauge");
    svg.replaceChildren();
    const turn = (share) => Math.PI * (1 - (share - 0.5) / 0.5);
    const place = (share, r) => `${30 + r * Math.cos(turn(share))} ${31 - r * Math.sin(turn(share))}`;
    element(svg, "path", { class: "soft", "stroke-width": 3, d: `M${place(0.5, 26)}A26 26 0 0 1 ${place(1, 26)}` });
    element(svg, "path", { class: "in-line", "stroke-width": 5, d: `M${place(Math.max(curves.coverage_low[at], 0.5), 26)}A26 26 0 0 1 ${place(Math.max(curves.coverage_high[at], 0.5), 26)}` });
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
    slider.setAttribute("aria-valuetext", levelText(at));
    setNumber("radius", curves.radius[at], `±${number(curves.radius[at])}`);
    setNumber("coverage", curves.coverage[at], percent(curves.coverage[at]));
    setNumber("promised", curves.guaranteed_level[at], percent(curves.guaranteed_level[at]));
    byId("range").textContent = range(curves.coverage_low[at], curves.coverage_high[at]);
    Object.assign(byId("range").dataset, { low: curves.coverage_low[at], high: curves.coverage_high[at] });
    const moving = {
      coverage: [curves.coverage, curves.coverage_low, curves.coverage_high],
      mean_width: [curves.radius.map((r) => 2 * r), curves.width_low, curves.width_high],
      interval_score: [curves.interval_score, curves.interval_score_low, curves.interval_score_high],
    };
    for (const row of byId("scores").querySelectorAll("[data-score]")) {
      const [value, low, high] = moving[row.dataset.score].map((held) => number(held[at]));
      row.cells[1].textContent = value;
      row.cells[2].textContent = `${low} to ${high}`;
      row.querySelector(".at").textContent = `at ${levelText(at)}`;
    }
    [...byId("parts").tBodies[0].rows].forEach((row, i) => {
      const { own, coverage, low, high, radius } = parts[i];
      row.cells[2].textContent = percent(coverage[own][at]);
      row.cells[3].textContent = range(low[own][at], high[own][at]);
      row.cells[4].textContent = `±${number(radius[own][at])}`;
    });
    for (const button of byId("jumps").children) button.setAttribute("aria-pressed", String(Number(button.value) === at));
  };
  const draw = () => [drawErrors, drawLevels, drawCovered, drawWidths, drawScatter, drawSample, drawGauge].forEach((one) => one());
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
    const now = byId("pictures").clientWidth;
    if (now !== width) { width = now; requestAnimationFrame(draw); }
  }).observe(byId("pictures"));
  move(asked);
})();
