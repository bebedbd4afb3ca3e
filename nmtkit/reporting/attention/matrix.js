// Attention as a matrix of squares, darker for more weight: large with names, or as a thumbnail.

const LARGEST_CELL = 24;
const SMALLEST_CELL = 11; // names of this height can still be read
const SIDE = 720; // the wanted side of the matrix, in pixels
const HEADING = 22; // the height of the name of a side
const MARKS = /(\u2581)/; // stand for spaces

/**
 * Draw a matrix with the names of its rows and columns, and of their sides.
 *
 * sides: {rows, columns}; colors: {ink, text, muted, frame};
 * cell: [row, column] to highlight, or null.
 * Returns the position of its corner and the size of a cell, in pixels.
 */
function drawMatrix(canvas, weights, rows, columns, sides, colors, cell) {
  const longest = Math.max(rows.length, columns.length);
  const size = Math.max(SMALLEST_CELL, Math.min(LARGEST_CELL, Math.floor(SIDE / longest)));
  const font = `${Math.min(14, size - 1)}px system-ui, sans-serif`;
  const measure = canvas.getContext("2d");
  measure.font = font;
  const widthOf = (name) => measure.measureText(name).width;
  const widest = (names) => HEADING + 12 + Math.max(...names.map(widthOf));
  const [left, top] = [widest(rows), widest(columns)];
  const width = left + columns.length * size + LARGEST_CELL; // room for the last name
  canvas.style.width = `${width}px`;
  const context = cleared(canvas, width, top + rows.length * size + 2);
  const [across, down] = [columns.length * size, rows.length * size];
  const squares = picture(weights, rows.length, columns.length, colors.ink);
  context.imageSmoothingEnabled = false;
  context.drawImage(squares, left, top, across, down);
  context.strokeStyle = colors.frame;
  context.strokeRect(left, top, across, down);
  nameRowsAndColumns(context, rows, columns, { left, top, size, font, colors });
  nameSides(context, sides, left, top, colors.muted);
  if (cell) {
    context.strokeStyle = colors.text;
    context.lineWidth = 2;
    context.strokeRect(left + cell[1] * size, top + cell[0] * size, size, size);
  }
  return { left, top, size };
}

function nameRowsAndColumns(context, rows, columns, { left, top, size, font, colors }) {
  context.font = font;
  context.fillStyle = colors.text;
  context.textBaseline = "middle";
  rows.forEach((name, i) => {
    const width = context.measureText(name).width;
    writeName(context, name, left - 6 - width, top + (i + 0.5) * size);
  });
  columns.forEach((name, j) => {
    upwards(context, left + (j + 0.5) * size, top - 6, () => writeName(context, name, 0, 0));
  });
}

/** Write a name from a place to the right; marks of spaces are light. */
function writeName(context, name, left, middle) {
  for (const part of name.split(MARKS)) {
    context.globalAlpha = MARKS.test(part) ? 0.4 : 1;
    context.fillText(part, left, middle);
    left += context.measureText(part).width;
  }
  context.globalAlpha = 1;
}

function nameSides(context, sides, left, top, color) {
  context.font = "14px system-ui, sans-serif";
  context.fillStyle = color;
  context.fillText(`${sides.columns} (attended to) \u2192`, left, HEADING / 2);
  context.textAlign = "right";
  upwards(context, HEADING / 2, top, () => {
    context.fillText(`\u2190 ${sides.rows} (attends)`, 0, 0);
  });
}

/** Draw at a place, with the x axis upwards. */
function upwards(context, left, bottom, drawIt) {
  context.save();
  context.translate(left, bottom);
  context.rotate(-Math.PI / 2);
  drawIt();
  context.restore();
}

/** Draw the squares of weights from 0 to 1. */
function drawScale(canvas, ink) {
  const weights = Float32Array.from({ length: 64 }, (_, index) => index / 63);
  canvas.width = weights.length;
  canvas.height = 1;
  canvas.getContext("2d").drawImage(picture(weights, 1, weights.length, ink), 0, 0);
}

/** Return a canvas of a matrix, one pixel per weight. */
function picture(weights, numRows, numColumns, color) {
  const canvas = document.createElement("canvas");
  canvas.width = numColumns;
  canvas.height = numRows;
  const context = canvas.getContext("2d");
  const pixels = context.createImageData(numColumns, numRows);
  weights.forEach((weight, index) => (pixels.data[4 * index + 3] = 255 * darkness(weight)));
  context.putImageData(pixels, 0, 0);
  context.globalCompositeOperation = "source-in"; // keeps the opacity and sets the colour
  context.fillStyle = color;
  context.fillRect(0, 0, numColumns, numRows);
  return canvas;
}
