// A chat message of every end, for services that take `{"text": …}` at a webhook.

import { dispatch, fault, handler, parameter, value } from "./kit/runwarden.js";

const SIGNS = { true: "✅", false: "❌" };

/** A minute and five seconds as `1m05s`. */
const span = (milliseconds) => {
  const seconds = Math.round(milliseconds / 1000);
  return seconds < 60 ? `${seconds}s` : `${Math.floor(seconds / 60)}m${String(seconds % 60).padStart(2, "0")}s`;
};

const text = (envelope) => {
  const { kind, id, status, success, reasonCode } = envelope;
  const { fields = {}, reason = {} } = JSON.parse(envelope.json);
  const took = fields.duration_ms == null ? "" : ` after ${span(fields.duration_ms)}`;
  const why = success ? "" : `\n> ${reason.summary ?? reasonCode}`;
  return `${SIGNS[success]} *${kind}/${id}* ${status}${took}${why}`;
};

export const notifier = {
  describe: () =>
    handler("chat", "1.0.0", "A chat message of every end.", ["webhook", "exec", "file"], [
      parameter("channel", "text", "", "Where it is said; empty: where the webhook belongs."),
      parameter("failures_only", "boolean", true, "Say nothing of what ended well."),
    ]),

  plan: (envelope, binding) => {
    if (envelope.success && value(binding.config, "failures_only")) {
      return [];
    }
    const channel = value(binding.config, "channel");
    if (/\s/.test(channel)) {
      // A fault is told to the operator in these words; the event stays owed.
      throw fault("bad_channel", `"${channel}" is no channel: it has a blank in it`);
    }
    const message = JSON.stringify({ text: text(envelope), ...(channel && { channel }) });
    return binding.destinations.map((destination) => dispatch(destination, message));
  },
};
