// What the statuses of a ticket mean.

import { admit, codes, edge, field, policy, refuse, status } from "./kit/runwarden.js";

export const lifecycle = {
  describe: () =>
    policy("ticket", "1.0.0", {
      summary: "A ticket that people and agents work on.",
      statuses: [
        status("open", "Nobody works on it.", { initial: true, creationCode: "ticket.open.created" }),
        status("working", "Somebody works on it."),
        status("solved", "An operator saw that it is solved.", { terminal: true, success: true }),
        status("declined", "Nothing is done about it.", { terminal: true }),
      ],
      edges: [
        edge("open", "working"),
        edge("open", "declined"),
        edge("working", "open"),
        edge("working", "declined"),
        edge("working", "solved", { requiredPatch: ["resolution"], guarded: true }),
      ],
      fields: [field("resolution", "text", "What was done.")],
      reasonCodes: codes({
        "ticket.open.created": "Was written.",
        "ticket.open.returned": "Was given back.",
        "ticket.working.taken": "Was taken up.",
        "ticket.solved.ok": "Is solved.",
        "ticket.declined.operator": "Is not worth it.",
      }),
      emitsEvents: true,
    }),
};

export const guard = {
  evaluate: ({ actor }) =>
    ["operator", "admin"].includes(actor.kind)
      ? admit()
      : refuse("not_a_person", "a person sees that a ticket is solved"),
};
