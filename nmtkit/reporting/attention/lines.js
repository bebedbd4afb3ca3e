// Lines between two columns of words: one colour per head; the opacity shows the weight.

const MIN_WEIGHT = 0.02; // smaller weights have no line
const MIN_WEIGHT_OF_WORD = 0.005; // the same for the lines of one word
const MAX_LINES = 4000; // more are slow to draw and hide each other
const MARK = 9; // the width of a head's mark next to a word, in pixels

/**
 * Draw all lines, with the weight as opacity; or the lines of one word, with its square root.
 * With a word, marks at the other ends show the weight of each head.
 *
 * heads: [{weights, color}]; word: {side, index} or null; row: the height of a row in pixels.
 * Returns the number of lines, the faintest, that were left out above MAX_LINES.
 */
function drawLines(canvas, heads, numRows, numColumns, word, row) {
  const width = canvas.clientWidth;
  const context = cleared(canvas, width, Math.max(numRows, numColumns) * row);
  const marks = word ? Math.min(MARK, width / 3 / heads.length) : 0;
  const left = word?.side === "column" ? marks * heads.length : 0;
  const right = width - (word?.side === "row" ? marks * heads.length : 0);
  const step = Math.min(2, (0.5 * row) / heads.length); // so that no head hides another
  const visible = heads.map(({ weights }) => linesOf(weights, numRows, numColumns, word));
  const strengths = visible.flat().map(([, , weight]) => weight).sort((a, b) => b - a);
  const least = strengths[MAX_LINES - 1] ?? 0;
  heads.forEach(({ color }, index) => {
    const lines = visible[index].filter(([, , weight]) => weight >= least);
    const shift = row / 2 + (index - (heads.length - 1) / 2) * step;
    context.strokeStyle = context.fillStyle = color;
    for (const [i, j, weight] of lines) {
      // One path per line: a path of many crossing lines takes far longer.
      const strength = word ? darkness(weight) : weight;
      context.globalAlpha = strength;
      context.lineWidth = 1 + 1.5 * strength;
      context.beginPath();
      context.moveTo(left, i * row + shift);
      context.lineTo(right, j * row + shift);
      context.stroke();
    }
    if (word) {
      const x = word.side === "row" ? right + index * marks : index * marks;
      for (const [i, j, weight] of lines) {
        context.globalAlpha = darkness(weight);
        context.fillRect(x, (word.side === "row" ? j : i) * row + 1, marks - 1, row - 2);
      }
    }
  });
  return strengths.filter((weight) => weight < least).length;
}

/** List [row, column, weight] of the visible lines, all or of one word. */
function linesOf(weights, numRows, numColumns, word) {
  const [firstRow, endRow] = range("row", numRows, word);
  const [firstColumn, endColumn] = range("column", numColumns, word);
  const minWeight = word ? MIN_WEIGHT_OF_WORD : MIN_WEIGHT;
  const lines = [];
  for (let i = firstRow; i < endRow; i++) {
    for (let j = firstColumn; j < endColumn; j++) {
      const weight = weights[i * numColumns + j];
      if (weight >= minWeight) lines.push([i, j, weight]);
    }
  }
  return lines;
}

function range(side, length, word) {
  return word?.side === side ? [word.index, word.index + 1] : [0, length];
}

/** Clear a canvas at the resolution of the screen; returns its context, in CSS pixels. */
function cleared(canvas, width, height) {
  const scale = window.devicePixelRatio;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.scale(scale, scale);
  return context;
}
