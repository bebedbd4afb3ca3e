// Attention weights: unpacked, and joined to words, when first needed.

const ONE = 65535; // stands for weight 1
const known = new Map(); // weights by what they are of

/** Return the weights of a head, row by row; layer and head count from 1. */
function weightsOf(attention, layer, head, between) {
  if (!known.has(attention)) known.set(attention, { numbers: unpack(attention.weights) });
  const found = known.get(attention);
  return (found[`${layer} ${head} ${between}`] ??= between === "words"
    ? join(weightsOf(attention, layer, head, "subwords"), attention.rows, attention.columns)
    : weightsOfHead(attention, found.numbers, layer, head));
}

function weightsOfHead({ rows, columns, summary }, numbers, layer, head) {
  const size = rows.pieces.length * columns.pieces.length;
  const start = ((layer - 1) * summary[0].length + (head - 1)) * size;
  return Float32Array.from(numbers.subarray(start, start + size), (number) => number / ONE);
}

/** Decode base64 of 16-bit little-endian numbers. */
function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  return Uint16Array.from({ length: bytes.length / 2 }, (_, i) => view.getUint16(2 * i, true));
}

/** Join subwords to words: sum over the columns of a word, mean over its rows. */
function join(weights, rows, columns) {
  const width = columns.words.length;
  const joined = new Float32Array(rows.words.length * width);
  const sizes = new Float32Array(rows.words.length);
  for (const word of rows.word_of) sizes[word] += 1;
  let i = 0;
  for (const row of rows.word_of) {
    for (const column of columns.word_of) {
      joined[row * width + column] += weights[i++] / sizes[row];
    }
  }
  return joined;
}

/** Return the mean weights of at least one head. */
function mean(heads) {
  return heads[0].map((_, i) => heads.reduce((sum, weights) => sum + weights[i], 0) / heads.length);
}
