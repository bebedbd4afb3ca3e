// Lines between two columns of words: a colour a head, the stronger the more weight.

const FAINTEST = 0.02; // less weight has no line,
const FAINTEST_OF_WORD = 0.005; // nor less than this where one word's are drawn
const MOST_LINES = 4000; // more take long to draw, and are a fog
const MARK = 9; // the width of a head's mark beside a word, in pixels

/**
 * Draw lines, all, as strong as their weight; or those of one word, as strong as its square root.
 * Beside the words at their other ends, marks show how much each head gives.
 *
 * heads: [{weights, colour}]; word: {side, place} or null; row: the height of a row in pixels.
 * Returns how many lines, the faintest, were left out as there are too many.
 */
function drawLines(canvas, heads, numRows, numColumns, word, row) {
  const width = canvas.clientWidth;
  const context = cleared(canvas, width, Math.max(numRows, numColumns) * row);
  const marks = word ? Math.min(MARK, width / 3 / heads.length) : 0;
  const left = word?.side === "column" ? marks * heads.length : 0;
  const right = width - (word?.side === "row" ? marks * heads.length : 0);
  const step = Math.min(2, (0.5 * row) / heads.length); // so that no head hides another
  const seen = heads.map(({ weights }) => linesOf(weights, numRows, numColumns, word));
  const strengths = seen.flat().map(([, , weight]) => weight).sort((a, b) => b - a);
  const least = strengths[MOST_LINES - 1] ?? 0;
  heads.forEach(({ colour }, index) => {
    const lines = seen[index].filter(([, , weight]) => weight >= least);
    const shift = row / 2 + (index - (heads.length - 1) / 2) * step;
    context.strokeStyle = context.fillStyle = colour;
    for (const [i, j, weight] of lines) {
      // One by one: a path of many lines that cross takes far longer than its lines do.
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

/** List [row, column, weight] of what can be seen, all or of one word. */
function linesOf(weights, numRows, numColumns, word) {
  const [firstRow, endRow] = range("row", numRows, word);
  const [firstColumn, endColumn] = range("column", numColumns, word);
  const faintest = word ? FAINTEST_OF_WORD : FAINTEST;
  const lines = [];
  for (let i = firstRow; i < endRow; i++) {
    for (let j = firstColumn; j < endColumn; j++) {
      const weight = weights[i * numColumns + j];
      if (weight >= faintest) lines.push([i, j, weight]);
    }
  }
  return lines;
}

function range(side, length, word) {
  return word?.side === side ? [word.place, word.place + 1] : [0, length];
}

/** Empty a canvas, and make it as sharp as the screen; returns its context, in pixels of CSS. */
function cleared(canvas, width, height) {
  const scale = window.devicePixelRatio;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.scale(scale, scale);
  return context;
}
