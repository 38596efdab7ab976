// Short ways to write what a policy or handler gives. Each returns a plain object with the fields of the contract in
// wit/, names in camel case; what is not said is empty.

/** A descriptor: everything about a kind that is data. */
export const policy = (kind, version, more) => ({
  kind,
  name: kind,
  version,
  summary: "",
  statuses: [],
  edges: [],
  sameStatus: "append",
  fields: [],
  reasonCodes: [],
  emitsEvents: false,
  measuresEnd: false,
  execution: null,
  verdicts: [],
  kill: [],
  lease: null,
  delivery: null,
  retry: null,
  health: [],
  parameters: [],
  reads: { children: false, history: 0, tags: false, lastOutputBytes: 0, ext: [] },
  migrations: [],
  ext: [],
  ...more,
});

/** One word of the vocabulary. `more`: initial, creationCode, terminal, success, announced. */
export const status = (name, summary, more) => ({
  name,
  summary,
  initial: false,
  creationCode: null,
  terminal: false,
  success: false,
  announced: false,
  ext: [],
  ...more,
});

/** A move. `more`: actors, requiredPatch, requiredGuards, guarded. */
export const edge = (from, to, more) => ({
  from,
  to,
  actors: [],
  requiredPatch: [],
  requiredGuards: [],
  guarded: false,
  ext: [],
  ...more,
});

/** A field that a transition may patch: integer, number, text, boolean, timestamp or json. */
export const field = (name, kind, summary) => ({ name, kind, summary, ext: [] });

/** Reason codes with what they mean: `{"post.done.ok": "Was found good."}`. */
export const codes = (table) => Object.entries(table).map(([code, summary]) => ({ code, summary }));

/** What an operator may set. A default of null must be set. */
export const parameter = (name, kind, byDefault, summary) => ({
  name,
  kind,
  default: JSON.stringify(byDefault),
  choices: [],
  summary,
  ext: [],
});

/** A guard lets it pass. */
export const admit = () => ({ admitted: true, code: "", message: "", ext: [] });

/** A guard refuses: a code for programs (lower-case words joined by underscores), words for people. */
export const refuse = (code, message) => ({ admitted: false, code, message, ext: [] });

/** Throw it to say that the component itself cannot answer. An error of any other sort loses its words on the way. */
export const fault = (code, message) => ({ code, message, hint: null, ext: [] });

/** The value of a name in a patch, in fields, parameters or a configuration; undefined where it is not there. */
export const value = (list, name) => {
  const found = list.find((entry) => entry.name === name);
  return found && JSON.parse(found.json);
};

/** A handler's descriptor. `transports`: exec, webhook, file. */
export const handler = (name, version, summary, transports, config = []) => ({
  name,
  version,
  summary,
  config,
  transports,
  ext: [],
});

/** A dispatch to one of the binding's destinations. `more`: dedupKey, deadline, wantsAcknowledgement. */
export const dispatch = (destination, text, more) => ({
  destination,
  body: utf8(text),
  dedupKey: null,
  deadline: null,
  wantsAcknowledgement: false,
  ext: [],
  ...more,
});

/** The bytes of a text: the engine inside a component has no TextEncoder. */
export const utf8 = (text) =>
  Uint8Array.from(
    encodeURIComponent(text).match(/%[0-9A-F]{2}|./g) ?? [],
    (part) => (part.length > 1 ? parseInt(part.slice(1), 16) : part.charCodeAt(0)),
  );
