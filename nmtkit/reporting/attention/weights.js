// Attention weights: unpacked, and joined to words, when first needed.

const ONE = 65535; // stands for weight 1

/** The opacity of a weight: its square root, so that small weights are visible. */
const darkness = Math.sqrt;

/** One of the attentions of a sentence: all layers and heads. */
class Attention {
  constructor({ kind, rows, columns, summary, weights }) {
    this.kind = kind;
    this.rows = rows;
    this.columns = columns;
    this.summary = summary;
    this.packed = weights;
    this.numLayers = summary.length;
    this.numHeads = summary[0].length;
    this.known = new Map();
  }

  /** Return the words or subwords of a side, "rows" or "columns". */
  labels(side, between) {
    return between === "words" ? this[side].words : this[side].pieces;
  }

  /** Return the weights of a head, row by row; layer and head count from 1. */
  weights(layer, head, between) {
    const key = `${layer} ${head} ${between}`;
    if (!this.known.has(key)) this.known.set(key, this.find(layer, head, between));
    return this.known.get(key);
  }

  find(layer, head, between) {
    if (between === "words") return join(this.weights(layer, head), this.rows, this.columns);
    this.numbers ??= unpack(this.packed);
    const size = this.rows.pieces.length * this.columns.pieces.length;
    const start = ((layer - 1) * this.numHeads + head - 1) * size;
    return Float32Array.from(this.numbers.subarray(start, start + size)).map((n) => n / ONE);
  }
}

/** Decode base64 of 16-bit little-endian numbers. */
function unpack(text) {
  const characters = atob(text);
  const numbers = new Uint16Array(characters.length / 2);
  for (let i = 0; i < numbers.length; i++) {
    numbers[i] = characters.charCodeAt(2 * i) | (characters.charCodeAt(2 * i + 1) << 8);
  }
  return numbers;
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
  const sum = new Float32Array(heads[0].length);
  for (const weights of heads) weights.forEach((weight, i) => (sum[i] += weight));
  return sum.map((total) => total / heads.length);
}
