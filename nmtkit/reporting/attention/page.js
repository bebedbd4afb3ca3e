// The page: controls, what they show, pointer, keys, address.

const { selection: INITIAL, sentences } = data;
const RESETS = { sentence: { word: "" }, attention: { word: "" }, between: { word: "" } };
const KINDS = {
  memory: { name: "cross-attention", short: "cross: target \u2192 source" },
  encoder: { name: "encoder self-attention", short: "encoder: source \u2192 source" },
  decoder: { name: "decoder self-attention", short: "decoder: target \u2192 target" },
};
let shown = null; // the drawing without its weights: {svg, left, right, top, size}
let pointed = null; // under the pointer or the keyboard's cursor: a {row}, a {column}, or both

const attention = () => {
  const { attentions } = sentences[state.sentence - 1];
  return attentions.find(({ kind }) => kind === state.attention) ?? attentions[0];
};
const numLayers = () => attention().summary.length;
const layer = () => Math.min(state.layer, numLayers());
const heads = () => state.heads.split(",").filter(Boolean);
const labels = (side) => attention()[`${side}s`][state.between === "words" ? "words" : "pieces"];
const weights = (head) => weightsOf(attention(), layer(), head, state.between);
const isMatrix = () => state.drawing === "matrix";
const isolated = (text) => `\u2068${text}\u2069`; // keeps its writing direction to itself

/** Return the word whose lines are kept, as {row} or {column}; null without one. */
function heldWord() {
  const [, side, number] = state.word.match(/^(row|column)-(\d+)$/) ?? [];
  return labels(side ?? "row")[number - 1] === undefined ? null : { [side]: number - 1 };
}

function colorOf(head) {
  const style = getComputedStyle(document.documentElement);
  return `var(--head-${((head - 1) % style.getPropertyValue("--num-head-colors")) + 1})`;
}

function show() {
  pointed = null;
  display({ ...state, attention: attention().kind, layer: String(layer()) });
  const kinds = sentences[state.sentence - 1].attentions.map(({ kind }) => kind);
  for (const input of offeredBy("attention")) input.disabled = !kinds.includes(input.value);
  for (const input of offeredBy("layer")) input.disabled = +input.value > numLayers();
  shown = readDrawing(attention().drawings[state.between][state.drawing]);
  byId("picture").replaceChildren(shown.svg);
  drawWeights();
  describe();
  showSummary();
}

// ----------------------------------------------------------------------------------- drawing

function drawWeights() {
  const numColumns = labels("column").length;
  const group = shown.svg.querySelector(".weights");
  shown.svg.style.color = colorOf(heads().length === 1 ? heads()[0] : 1);
  if (isMatrix()) {
    if (heads().length) group.append(...squares(mean(heads().map(weights)), numColumns, shown));
    return;
  }
  const word = pointed ?? heldWord();
  const groups = heads().map((head, index) => {
    const found = lines(weights(head), numColumns, index, heads().length, word, shown);
    const own = svgElement("g", { stroke: "currentColor", fill: "currentColor" }, ...found);
    own.style.color = colorOf(head);
    return own;
  });
  group.replaceChildren(...groups);
}

/** Describe the drawing in words, or what is pointed to, which is also marked. */
function describe() {
  const place = pointed ?? heldWord();
  for (const name of shown.svg.querySelectorAll("[data-row], [data-column]")) {
    const { row, column } = name.dataset;
    const isChosen = +row === place?.row || +column === place?.column;
    name.classList.toggle("chosen", isChosen);
  }
  byId("description").textContent = description(place);
  byId("picture").ariaLabel = `${description(place)}; arrow keys read single weights`;
}

function description(place) {
  const name = KINDS[attention().kind].name;
  const ofLayer = `${name}, layer ${layer()} of ${numLayers()}`;
  if (!heads().length) return `${ofLayer}: no head is selected`;
  const some = heads().length === 1 ? `head ${state.heads}` : `${heads().length} heads`;
  const isMean = heads().length > 1 && (place || isMatrix());
  const ofHeads = isMean ? `mean of ${some}` : some;
  if (!place) return `${ofLayer}, ${ofHeads}`;
  const [rows, columns] = [labels("row"), labels("column")];
  const average = mean(heads().map(weights));
  const at = (row, column) => average[row * columns.length + column];
  const { row, column } = place;
  if (row !== undefined && column !== undefined) {
    const pair = `${isolated(rows[row])} \u2192 ${isolated(columns[column])}`;
    return `${pair}: ${at(row, column).toFixed(3)} (${ofHeads})`;
  }
  const isRow = column === undefined;
  const others = (isRow ? columns : rows).map((text, other) => {
    return { text, weight: isRow ? at(row, other) : at(other, column) };
  });
  const most = others.sort((a, b) => b.weight - a.weight).slice(0, 3);
  const texts = most.map(({ text, weight }) => `${isolated(text)} ${weight.toFixed(2)}`);
  const verb = isRow ? "attends to" : "is attended to by";
  const word = isolated(isRow ? rows[row] : columns[column]);
  return `${word} ${verb} ${texts.join(" \u00b7 ")} (${ofHeads})`;
}

// ---------------------------------------------------------------------------- pointer and keys

function point(place) {
  if (place?.row === pointed?.row && place?.column === pointed?.column) return;
  pointed = place;
  if (!isMatrix()) drawWeights();
  describe();
}

/** Return the word at the pointer, or in a matrix the square; null without one. */
function placeAt({ target, clientX, clientY }) {
  const name = target.closest("[data-row], [data-column]");
  if (name) {
    const [[side, index]] = Object.entries(name.dataset);
    return { [side]: +index };
  }
  if (!isMatrix()) return null;
  const inside = new DOMPoint(clientX, clientY).matrixTransform(
    shown.svg.getScreenCTM().inverse(),
  );
  const row = Math.floor((inside.y - shown.top) / shown.size);
  const column = Math.floor((inside.x - shown.left) / shown.size);
  const isInside = (index, side) => index >= 0 && index < labels(side).length;
  return isInside(row, "row") && isInside(column, "column") ? { row, column } : null;
}

const ARROWS = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] };

/** Return the neighbour of a place: a square of a matrix, or a word of one of both columns. */
function neighbour(place, [down, right]) {
  const within = (index, side) => Math.max(0, Math.min(labels(side).length - 1, index));
  if (isMatrix()) {
    const { row = 0, column = 0 } = place ?? { row: -down, column: -right };
    return { row: within(row + down, "row"), column: within(column + right, "column") };
  }
  const { row, column } = place ?? { row: -down };
  const isRow = right ? right < 0 : column === undefined;
  const side = isRow ? "row" : "column";
  return { [side]: within((row ?? column) + down, side) };
}

/** Keep only the lines of a word; of all words if it is kept already, or null. */
function hold(word) {
  const [[side, index]] = Object.entries(word ?? { none: -1 });
  const isHeld = !word || heldWord()?.[side] === index;
  change({ word: isHeld ? "" : `${side}-${index + 1}` });
}

const picture = byId("picture");
picture.onpointermove = (event) => point(placeAt(event));
picture.onpointerleave = picture.onblur = () => point(null);
picture.onclick = (event) => isMatrix() || hold(placeAt(event));
picture.onkeydown = (event) => {
  if (event.key === "Enter" && pointed && !isMatrix()) hold(pointed);
  if (!(event.key in ARROWS)) return;
  event.preventDefault();
  point(neighbour(pointed ?? heldWord(), ARROWS[event.key]));
};
document.onkeydown = (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.target.matches("select")) return;
  if (event.key === "Escape") hold(null);
  if (event.key === "0") {
    const all = offeredBy("heads").map(({ value }) => value);
    change({ heads: heads().length === all.length ? "" : all.join(",") });
  }
  if (event.key >= "1" && event.key <= "9") offeredBy("heads")[event.key - 1]?.click();
};

// ----------------------------------------------------------------------------------- summary

function showSummary() {
  const end = attention().columns.pieces.at(attention().kind === "decoder" ? 0 : -1);
  byId("symbol").textContent = `on ${end}`;
  const [numRows, numColumns] = [labels("row").length, labels("column").length];
  const rows = attention().summary[layer() - 1].map((summary, index) => {
    const head = String(index + 1);
    const place = { left: 0, top: 0, size: 1 };
    const viewBox = `0 0 ${numColumns} ${numRows}`;
    const look = { class: "small", fill: "currentColor", preserveAspectRatio: "none" };
    const own = squares(weights(head), numColumns, place);
    const small = svgElement("svg", { ...look, viewBox, "aria-hidden": true }, ...own);
    small.style.color = colorOf(head);
    const { entropy, distance, diagonal, symbol } = summary;
    const texts = [entropy.toFixed(2), distance.toFixed(1), diagonal.toFixed(2), symbol.toFixed(2)];
    const cells = texts.map((textContent) => element("td", { textContent }));
    const only = element("button", { type: "button", textContent: head, title: "this head alone" });
    only.style.setProperty("--own", colorOf(head));
    only.onclick = () => change({ heads: head });
    const name = element("th", { scope: "row" }, only);
    const row = element("tr", {}, name, element("td", {}, small), ...cells);
    row.classList.toggle("off", !heads().includes(head));
    return row;
  });
  const buttons = () => [...byId("summary").querySelectorAll("button")];
  const focused = buttons().indexOf(document.activeElement);
  byId("summary").replaceChildren(...rows);
  buttons()[focused]?.focus();
}

// ---------------------------------------------------------------------------------- controls

const numbers = (count) => Array.from({ length: count }, (_, index) => String(index + 1));
const summaries = sentences.flatMap(({ attentions }) => attentions.map(({ summary }) => summary));
const titles = sentences.map(({ source }, index) => `${index + 1}: ${isolated(source)}`);
offer("sentence", titles.map((title, index) => [index + 1, title]));
byId("chooser").hidden = sentences.length === 1;
offer("attention", Object.entries(KINDS).map(([kind, { short }]) => [kind, short]));
offer("layer", numbers(Math.max(...summaries.map(({ length }) => length))));
offer("heads", numbers(summaries[0][0].length), "checkbox");
for (const input of offeredBy("heads")) {
  input.parentElement.style.setProperty("--own", colorOf(input.value));
}
offer("drawing", ["lines", "matrix"]);
offer("between", ["subwords", "words"]);
readState();
