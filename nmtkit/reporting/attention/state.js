// What is shown. The address keeps it behind its "#", so that a view can be sent to somebody.

/** Read a state from an address; what is missing or impossible is as it is in `initial`. */
function readState(address, initial, sentences) {
  const given = { ...initial, ...Object.fromEntries(new URLSearchParams(address.slice(1))) };
  const isPlace = (text, number) => Number.isInteger(+text) && +text >= 1 && +text <= number;
  const sentence = isPlace(given.sentence, sentences.length) ? +given.sentence : initial.sentence;
  const attentions = sentences[sentence - 1].attentions;
  const attention = attentions.find(({ kind }) => kind === given.attention) ?? attentions[0];
  const isLayer = isPlace(given.layer, attention.numLayers);
  const headsOf = (text) => text.split(",").filter((one) => isPlace(one, attention.numHeads));
  const found = headsOf(given.heads);
  // An empty list is one of no heads; one of none that there are is impossible.
  const heads = found.length > 0 || given.heads === "" ? found : headsOf(initial.heads);
  const between = given.between === "words" ? "words" : "subwords";
  const [, side, place] = given.word.match(/^(row|column)-(\d+)$/) ?? [];
  const isWord = side && isPlace(place, attention.labels(`${side}s`, between).length);
  return {
    sentence,
    attention: attention.kind,
    layer: isLayer ? +given.layer : Math.min(initial.layer, attention.numLayers),
    heads: new Set(heads.map(Number).sort((a, b) => a - b)),
    drawing: given.drawing === "matrix" ? "matrix" : "lines",
    between,
    word: isWord ? { side, place: +place - 1 } : null,
  };
}

/** The address of a state. */
function addressOf(state) {
  const word = state.word ? `${state.word.side}-${state.word.place + 1}` : "";
  const values = { ...state, heads: [...state.heads].join(","), word };
  return `#${new URLSearchParams(values)}`.replaceAll("%2C", ",");
}
