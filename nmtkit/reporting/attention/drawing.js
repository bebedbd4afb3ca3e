// Weights in a drawing, as drawing.py draws them; the drawing itself comes with its words.

const MIN_WEIGHT = 0.02; // smaller weights are not drawn
const MIN_WEIGHT_OF_WORD = 0.005; // the same for the lines of one word
const MARK = 9; // the width of a head's mark next to a word, in pixels

/** The opacity of a weight: its square root, so that small weights are visible. */
const darkness = Math.sqrt;

function svgElement(name, attributes, ...children) {
  const created = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) created.setAttribute(key, value);
  created.append(...children);
  return created;
}

/** Return a drawing from its text, and the place of the weights in it, in pixels. */
function readDrawing(text) {
  const svg = new DOMParser().parseFromString(text, "text/html").querySelector("svg");
  const numbers = Object.entries(svg.dataset).map(([name, value]) => [name, +value]);
  return { svg, ...Object.fromEntries(numbers) };
}

/** Call a function with the weight, row and column of each weight that is large enough. */
function forEachWeight(weights, numColumns, minWeight, use) {
  weights.forEach((weight, place) => {
    if (weight >= minWeight) use(weight, Math.floor(place / numColumns), place % numColumns);
  });
}

/** Return a square per pair of words. */
function squares(weights, numColumns, { left, top, size }) {
  const found = [];
  forEachWeight(weights, numColumns, MIN_WEIGHT, (weight, row, column) => {
    const place = { x: left + size * column, y: top + size * row, width: size, height: size };
    found.push(svgElement("rect", { ...place, "fill-opacity": darkness(weight).toFixed(3) }));
  });
  return found;
}

/**
 * Return the lines of a head, with the weight as opacity; or those of one word, with its square
 * root, and marks at their other ends.
 *
 * index: of the head among `numHeads` that are drawn; word: {row} or {column}, or null.
 */
function lines(weights, numColumns, index, numHeads, word, { left, right, top, size }) {
  const mark = word ? Math.min(MARK, (right - left) / 3 / numHeads) : 0;
  const isOfColumn = word?.column !== undefined;
  const start = isOfColumn ? left + mark * numHeads : left;
  const end = isOfColumn ? right : right - mark * numHeads;
  const step = Math.min(2, size / 2 / numHeads); // so that no head hides another
  const shift = top + size / 2 + (index - (numHeads - 1) / 2) * step;
  const found = [];
  const minWeight = word ? MIN_WEIGHT_OF_WORD : MIN_WEIGHT;
  forEachWeight(weights, numColumns, minWeight, (weight, row, column) => {
    if (word && word.row !== row && word.column !== column) return;
    const strength = word ? darkness(weight) : weight;
    const d = `M${start},${shift + size * row} L${end},${shift + size * column}`;
    const look = { "stroke-opacity": strength.toFixed(3), "stroke-width": 1 + 2 * strength };
    found.push(svgElement("path", { d, ...look }));
    if (!word) return;
    const x = (isOfColumn ? left : end) + mark * index;
    const y = top + size * (isOfColumn ? row : column) + 2;
    const box = { x, y, width: Math.max(0.5, mark - 1), height: size - 4, stroke: "none" };
    found.push(svgElement("rect", { ...box, "fill-opacity": strength.toFixed(3) }));
  });
  return found;
}
