// The page: controls, what they show, pointer, keys, address.

const { selection: initial, sentences } = JSON.parse(element("data").textContent);
for (const sentence of sentences) {
  sentence.attentions = sentence.attentions.map((data) => new Attention(data));
}
const LARGE = 720; // a wider matrix, in pixels, has the whole row
const KINDS = {
  memory: { name: "cross-attention", short: "cross", rows: "target", columns: "source" },
  encoder: { name: "encoder self-attention", short: "encoder", rows: "source", columns: "source" },
  decoder: { name: "decoder self-attention", short: "decoder", rows: "target", columns: "target" },
};
let state = readState(location.hash, initial, sentences);
let pointed = null; // the word under the pointer or the keyboard focus: {side, index}
let cell = null; // the square under the pointer or the keyboard cursor: [row, column]
let numLeftOut = 0; // lines that are not drawn
let layout = { left: 0, top: 0, size: 1 }; // of the matrix in its canvas

function element(id) {
  return document.getElementById(id);
}

function make(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

/** Replace the children of an element; the focus stays at the same index. */
function fill(container, children) {
  const focusable = () => [...container.querySelectorAll("input, button")];
  const index = focusable().indexOf(document.activeElement);
  container.replaceChildren(...children);
  focusable()[index]?.focus();
}

function variable(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name);
}

const numColors = Number(variable("--num-head-colors"));
const colorName = (head) => `--head-${((head - 1) % numColors) + 1}`;

const sentence = () => sentences[state.sentence - 1];
const attention = () => sentence().attentions.find(({ kind }) => kind === state.attention);
const labels = (side) => attention().labels(side, state.between);
const weightsOf = (head) => attention().weights(state.layer, head, state.between);
const isolated = (text) => `\u2068${text}\u2069`; // keeps its writing direction to itself
const plural = (number, word) => `${number} ${word}${number === 1 ? "" : "s"}`;

// ---------------------------------------------------------------------------------- controls

/** Change the state and the address. */
function change(values) {
  const changed = { ...state, ...values };
  const isSame = (name) => changed[name] === state[name];
  if (!["sentence", "attention", "between"].every(isSame)) changed.word = null;
  const next = readState(addressOf(changed), initial, sentences);
  if (next.attention !== changed.attention) next.word = null;
  history.replaceState(null, "", addressOf(next));
  show(next);
}

function show(next) {
  state = next;
  pointed = cell = null;
  showControls();
  showWords();
  draw();
  showSummary();
}

/** Show values as radio buttons. */
function offer(id, values, isPossible = () => true, nameOf = (value) => value) {
  const labels = values.map((value) => {
    const input = make("input", { type: "radio", name: id, value });
    input.checked = state[id] === value;
    input.disabled = !isPossible(value);
    input.onchange = () => change({ [id]: value });
    return make("label", {}, input, make("span", { textContent: nameOf(value) }));
  });
  fill(element(id), [element(id).firstElementChild, ...labels]);
}

function showControls() {
  const kinds = sentence().attentions.map(({ kind }) => kind);
  element("chooser").hidden = sentences.length === 1;
  element("sentence").value = state.sentence;
  const nameOf = (kind) => {
    const { short, rows, columns } = KINDS[kind];
    return `${short}: ${rows} \u2192 ${columns}`;
  };
  offer("attention", Object.keys(KINDS), (kind) => kinds.includes(kind), nameOf);
  offer("layer", count(attention().numLayers));
  offer("drawing", ["lines", "matrix"]);
  offer("between", ["subwords", "words"]);
  const heads = count(attention().numHeads).map((head) => {
    const input = make("input", { type: "checkbox", value: head });
    input.checked = state.heads.has(head);
    input.onchange = () => toggle(head);
    const label = make("label", {}, input, make("span", { textContent: head }));
    label.style.setProperty("--own", `var(${colorName(head)})`);
    return label;
  });
  fill(element("heads"), [element("heads").firstElementChild, ...heads]);
}

function count(number) {
  return Array.from({ length: number }, (_, index) => index + 1);
}

function toggle(head) {
  const heads = new Set(state.heads);
  if (!heads.delete(head)) heads.add(head);
  change({ heads });
}

// ------------------------------------------------------------------------------------- words

/** List the words of both sides; each side is one tab stop. */
function showWords() {
  const numWords = Math.max(labels("rows").length, labels("columns").length);
  const row = Math.max(15, Math.min(26, Math.floor(900 / numWords)));
  element("lines").style.setProperty("--row", `${row}px`);
  for (const side of ["row", "column"]) {
    element(`${side}-side`).textContent = KINDS[state.attention][`${side}s`];
    const words = labels(`${side}s`).map((text, index) => {
      const word = make("button", { type: "button", dir: "auto", title: text }, ...parts(text));
      word.tabIndex = index === 0 ? 0 : -1;
      word.dataset.index = index;
      return make("li", {}, word);
    });
    fill(element(`${side}s`), words);
  }
}

/** Split a text into its words and the marks between them, U+2581, which are light. */
function parts(text) {
  return text.split(MARKS).map((part) => {
    return MARKS.test(part) ? make("span", { className: "space", textContent: part }) : part;
  });
}

function wordAt(event, side) {
  const index = event.target.dataset?.index;
  return index === undefined ? null : { side, index: +index };
}

function point(word) {
  pointed = word;
  draw();
}

for (const side of ["row", "column"]) {
  const list = element(`${side}s`);
  list.onpointerover = (event) => point(wordAt(event, side));
  list.onpointerleave = () => point(null);
  list.addEventListener("focusin", (event) => {
    list.querySelectorAll("button").forEach((word) => (word.tabIndex = -1));
    event.target.tabIndex = 0;
    point(wordAt(event, side));
  });
  list.addEventListener("focusout", () => point(null));
  list.onclick = (event) => {
    const word = wordAt(event, side);
    const isHeld = word && state.word?.side === side && state.word.index === word.index;
    if (word) hold(isHeld ? null : word);
  };
  list.onkeydown = (event) => {
    const steps = { ArrowDown: 1, ArrowUp: -1 };
    const words = [...list.querySelectorAll("button")];
    const next = words[words.indexOf(event.target) + steps[event.key]];
    if (!next) return;
    event.preventDefault();
    next.focus();
  };
}

/** Keep only the lines of a word, or of all if null; the words and the focus stay unchanged. */
function hold(word) {
  state.word = word;
  history.replaceState(null, "", addressOf(state));
  draw();
}

// ----------------------------------------------------------------------------------- drawing

function draw() {
  const isMatrix = state.drawing === "matrix";
  element("lines").hidden = isMatrix;
  element("squares").hidden = !isMatrix;
  const heads = [...state.heads].map((head) => ({
    weights: weightsOf(head),
    color: variable(colorName(head)),
  }));
  const word = isMatrix ? null : (pointed ?? state.word);
  for (const button of document.querySelectorAll("#lines button")) {
    const side = button.closest("ol").id.slice(0, -1);
    const isChosen = word?.side === side && word.index === +button.dataset.index;
    button.classList.toggle("chosen", isChosen);
    button.setAttribute("aria-pressed", String(isChosen && word === state.word));
  }
  const [rows, columns] = [labels("rows"), labels("columns")];
  const average = heads.length ? mean(heads.map(({ weights }) => weights)) : null;
  if (isMatrix) {
    const ink = heads.length === 1 ? heads[0].color : variable("--head-1");
    const [text, muted, frame] = ["--text", "--muted", "--line"].map(variable);
    const colors = { ink, text, muted, frame };
    const shown = average ?? new Float32Array(rows.length * columns.length);
    const sides = KINDS[state.attention];
    layout = drawMatrix(element("matrix"), shown, rows, columns, sides, colors, cell);
    drawScale(element("scale"), ink);
    element("squares").classList.toggle("large", element("matrix").offsetWidth > LARGE);
  } else {
    const row = parseFloat(element("lines").style.getPropertyValue("--row"));
    numLeftOut = drawLines(element("strokes"), heads, rows.length, columns.length, word, row);
  }
  const description = describe(average, rows, columns, word);
  element("description").textContent = description;
  element("matrix").ariaLabel = `${description}; arrow keys read single squares`;
}

/** Describe the drawing in words. */
function describe(average, rows, columns, word) {
  const layer = `${KINDS[state.attention].name}, layer ${state.layer} of ${attention().numLayers}`;
  if (!average) return `${layer}: no head is selected`;
  const [number] = state.heads;
  const heads = state.heads.size === 1 ? `head ${number}` : `mean of ${state.heads.size} heads`;
  const at = (i, j) => average[i * columns.length + j];
  if (cell) {
    const [i, j] = cell;
    return `${isolated(rows[i])} \u2192 ${isolated(columns[j])}: ${at(i, j).toFixed(3)} (${heads})`;
  }
  if (state.drawing === "matrix") return `${layer}, ${heads}`;
  if (!word) {
    const rest = numLeftOut ? `, without the ${plural(numLeftOut, "faintest line")}` : "";
    return `${layer}, ${plural(state.heads.size, "head")}${rest}`;
  }
  const isRow = word.side === "row";
  const others = (isRow ? columns : rows).map((text, other) => {
    return { text, weight: isRow ? at(word.index, other) : at(other, word.index) };
  });
  const most = others.sort((a, b) => b.weight - a.weight).slice(0, 3);
  const weights = most.map(({ text, weight }) => `${isolated(text)} ${weight.toFixed(2)}`);
  const name = isolated((isRow ? rows : columns)[word.index]);
  const verb = isRow ? "attends to" : "is attended to by";
  return `${name} ${verb} ${weights.join(" \u00b7 ")} (${heads})`;
}

// ------------------------------------------------------------------------------------ matrix

function selectCell(row, column) {
  const isInside = row >= 0 && column >= 0 && row < labels("rows").length;
  cell = isInside && column < labels("columns").length ? [row, column] : null;
  draw();
}

element("matrix").onpointermove = (event) => {
  const row = Math.floor((event.offsetY - layout.top) / layout.size);
  const column = Math.floor((event.offsetX - layout.left) / layout.size);
  if (row !== cell?.[0] || column !== cell?.[1]) selectCell(row, column);
};
element("matrix").onpointerleave = () => selectCell(-1, -1);
element("matrix").onblur = () => selectCell(-1, -1);
element("matrix").onkeydown = (event) => {
  const steps = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] };
  const step = steps[event.key];
  if (!step) return;
  event.preventDefault();
  const limit = (number, length) => Math.max(0, Math.min(length - 1, number));
  const [row, column] = cell ? [cell[0] + step[0], cell[1] + step[1]] : [0, 0];
  selectCell(limit(row, labels("rows").length), limit(column, labels("columns").length));
};

// ----------------------------------------------------------------------------------- summary

function showSummary() {
  element("symbol").replaceChildren(
    `on ${attention().columns.pieces.at(state.attention === "decoder" ? 0 : -1)}`,
    make("small", { textContent: "share" }),
  );
  const size = [labels("rows").length, labels("columns").length];
  const heads = attention().summary[state.layer - 1].map((summary, index) => {
    const head = index + 1;
    const only = make("button", { type: "button", textContent: head, title: "this head alone" });
    only.style.setProperty("--own", `var(${colorName(head)})`);
    only.onclick = () => change({ heads: new Set([head]) });
    const small = picture(weightsOf(head), ...size, variable(colorName(head)));
    small.className = "small";
    const { entropy, distance, diagonal, symbol } = summary;
    const texts = [entropy.toFixed(2), distance.toFixed(1), diagonal.toFixed(2), symbol.toFixed(2)];
    const cells = texts.map((textContent) => make("td", { textContent }));
    const row = make("tr", {}, make("th", { scope: "row" }, only), make("td", {}, small), ...cells);
    row.classList.toggle("off", !state.heads.has(head));
    return row;
  });
  fill(element("summary"), heads);
}

// ------------------------------------------------------------------------ the page as a whole

document.onkeydown = (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.target.matches("select")) return;
  if (event.key === "Escape") hold(null);
  if (event.key === "0") {
    const all = count(attention().numHeads);
    change({ heads: new Set(state.heads.size === all.length ? [] : all) });
  }
  const head = Number(event.key);
  if (head >= 1 && head <= attention().numHeads) toggle(head);
};
window.onhashchange = () => show(readState(location.hash, initial, sentences));
window.onresize = draw;
matchMedia("(prefers-color-scheme: dark)").onchange = () => show(state);
element("sentence").append(
  ...sentences.map(({ source }, index) => {
    return make("option", { value: index + 1, textContent: `${index + 1}: ${isolated(source)}` });
  }),
);
element("sentence").onchange = (event) => change({ sentence: +event.target.value });
show(state);
