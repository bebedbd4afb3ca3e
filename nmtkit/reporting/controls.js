// What pages with controls share: elements, and a state that the controls and the address keep.
// A page defines INITIAL, values by name; RESETS, what else changes with some of them; and show().

const byId = (id) => document.getElementById(id);
const data = JSON.parse(byId("data").textContent);
let state; // texts by name

function element(name, properties, ...children) {
  const created = Object.assign(document.createElement(name), properties);
  created.append(...children);
  return created;
}

/** Offer texts, or pairs of a value and its text: options of a select, or inputs of a fieldset. */
function offer(id, choices, type = "radio") {
  const control = byId(id);
  const made = choices.map((choice) => {
    const [value, text = value] = [choice].flat();
    if (control.matches("select")) return new Option(text, value);
    const input = element("input", { type, name: id, value });
    return element("label", {}, input, element("span", { textContent: text }));
  });
  control.append(...made);
  const chosen = () => [...control.querySelectorAll(":checked")].map(({ value }) => value);
  control.onchange = () => change({ [id]: chosen().join(",") });
}

const offeredBy = (id) => [...(byId(id)?.querySelectorAll("option, input") ?? [])];

/** Show values in their controls. */
function display(values) {
  for (const [id, value] of Object.entries(values)) {
    for (const one of offeredBy(id)) {
      const isChosen = value.split(",").includes(one.value);
      one[one.matches("option") ? "selected" : "checked"] = isChosen;
    }
  }
}

/** Change the state and the address, which keeps what is not initial; and show the result. */
function change(values) {
  const resets = Object.keys(values).map((name) => RESETS[name]);
  state = Object.assign({}, state, ...resets, values);
  const changed = Object.entries(state).filter(([name, value]) => value !== INITIAL[name]);
  history.replaceState(null, "", `#${new URLSearchParams(changed)}`);
  show();
}

/** Read the state from the address; instead of what its control does not offer, the initial one. */
function readState() {
  const isPossible = ([name, value]) => {
    const offered = offeredBy(name);
    const isNothing = value === "" && offered[0]?.type === "checkbox";
    const isOffered = (one) => offered.some((other) => other.value === one);
    const isFine = !offered.length || isNothing || value.split(",").every(isOffered);
    return Object.hasOwn(INITIAL, name) && isFine;
  };
  const given = [...new URLSearchParams(location.hash.slice(1))].filter(isPossible);
  state = { ...INITIAL, ...Object.fromEntries(given) };
  show();
}

window.onhashchange = readState;
