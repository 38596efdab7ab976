// What the statuses of a {{kind}} mean.

import { admit, codes, edge, field, policy, refuse, status, value } from "./kit/runwarden.js";

export const lifecycle = {
  describe: () =>
    policy("{{kind}}", "1.0.0", {
      name: "{{name}}",
      summary: "A {{kind}}.",
      statuses: [
        status("open", "Is being worked on.", { initial: true, creationCode: "{{kind}}.open.created" }),
        status("review", "Waits for somebody to look at it.", { announced: true }),
        status("done", "Is as it should be.", { terminal: true, success: true }),
        status("dropped", "Is not wanted any more.", { terminal: true }),
      ],
      edges: [
        edge("open", "review"),
        edge("review", "open"),
        // What data cannot say, the guard below does.
        edge("review", "done", { requiredPatch: ["reviewer"], guarded: true }),
        edge("open", "dropped"),
        edge("review", "dropped"),
      ],
      fields: [field("author", "text", "Who did the work."), field("reviewer", "text", "Who looked at it.")],
      reasonCodes: codes({
        "{{kind}}.open.created": "Was begun.",
        "{{kind}}.open.again": "More is to be done.",
        "{{kind}}.review.asked": "Somebody is to look at it.",
        "{{kind}}.done.ok": "Was found good.",
        "{{kind}}.dropped.operator": "Was given up.",
      }),
      emitsEvents: true,
    }),
};

// Asked on edges marked `guarded` alone. It may refuse what the table allows, never allow what the table forbids.
export const guard = {
  evaluate: (request) => {
    const reviewer = value(request.patch, "reviewer");
    if (reviewer !== undefined && reviewer === value(request.entity.fields, "author")) {
      return refuse("same_person", "nobody looks at their own work");
    }
    return admit();
  },
};
