// What is sent when something ended: one line for people, of every end that is no success.

import { dispatch, handler, parameter, value } from "./kit/runwarden.js";

export const notifier = {
  describe: () =>
    handler("{{name}}", "1.0.0", "One line for people about every end that is no success.", ["exec", "file"], [
      parameter("successes", "boolean", false, "Tell of successes too."),
    ]),

  plan: (envelope, binding) => {
    if (envelope.success && !value(binding.config, "successes")) {
      // An empty plan is a plan: nobody is told, and nothing is owed.
      return [];
    }
    const { kind, id, status, reasonCode } = envelope;
    // A destination that is a file takes one line of JSON; a string is one.
    const line = JSON.stringify(`${kind}/${id} is ${status} (${reasonCode})`);
    return binding.destinations.map((destination) => dispatch(destination, line));
  },
};
