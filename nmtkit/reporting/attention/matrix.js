// Attention as a matrix of squares, darker for more weight: large with names, or as a thumbnail.

const LARGEST_CELL = 24;
const SMALLEST_CELL = 11; // names of this height can still be read
const SIDE = 720; // the wanted side of the matrix, in pixels

/**
 * Draw a matrix with the names of its rows and columns.
 *
 * colors: {ink, text, frame}; cell: [row, column] to highlight, or null.
 * Returns the position of its corner and the size of a cell, in pixels.
 */
function drawMatrix(canvas, weights, rows, columns, colors, cell) {
  const longest = Math.max(rows.length, columns.length);
  const size = Math.max(SMALLEST_CELL, Math.min(LARGEST_CELL, Math.floor(SIDE / longest)));
  const font = `${Math.min(14, size - 1)}px system-ui, sans-serif`;
  const measure = canvas.getContext("2d");
  measure.font = font;
  const widest = (names) => 12 + Math.max(...names.map((name) => measure.measureText(name).width));
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
  context.textAlign = "right";
  rows.forEach((name, i) => context.fillText(name, left - 6, top + (i + 0.5) * size));
  context.textAlign = "left";
  columns.forEach((name, j) => {
    context.save();
    context.translate(left + (j + 0.5) * size, top - 6);
    context.rotate(-Math.PI / 2);
    context.fillText(name, 0, 0);
    context.restore();
  });
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
