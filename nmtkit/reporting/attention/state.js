// The state of the page. The address keeps it after "#", so that a view can be shared.

/** Read a state from an address; missing or impossible values come from `initial`. */
function readState(address, initial, sentences) {
  const given = { ...initial, ...Object.fromEntries(new URLSearchParams(address.slice(1))) };
  const isNumber = (text, max) => Number.isInteger(+text) && +text >= 1 && +text <= max;
  const sentence = isNumber(given.sentence, sentences.length) ? +given.sentence : initial.sentence;
  const attentions = sentences[sentence - 1].attentions;
  const attention = attentions.find(({ kind }) => kind === given.attention) ?? attentions[0];
  const isLayer = isNumber(given.layer, attention.numLayers);
  const headsOf = (text) => text.split(",").filter((one) => isNumber(one, attention.numHeads));
  const found = headsOf(given.heads);
  // An empty list selects no head; a list of only unknown heads is impossible.
  const heads = found.length > 0 || given.heads === "" ? found : headsOf(initial.heads);
  const between = given.between === "words" ? "words" : "subwords";
  const [, side, number] = given.word.match(/^(row|column)-(\d+)$/) ?? [];
  const isWord = side && isNumber(number, attention.labels(`${side}s`, between).length);
  return {
    sentence,
    attention: attention.kind,
    layer: isLayer ? +given.layer : Math.min(initial.layer, attention.numLayers),
    heads: new Set(heads.map(Number).sort((a, b) => a - b)),
    drawing: given.drawing === "matrix" ? "matrix" : "lines",
    between,
    word: isWord ? { side, index: +number - 1 } : null,
  };
}

/** Return the address of a state. */
function addressOf(state) {
  const word = state.word ? `${state.word.side}-${state.word.index + 1}` : "";
  const values = { ...state, heads: [...state.heads].join(","), word };
  return `#${new URLSearchParams(values)}`.replaceAll("%2C", ",");
}
