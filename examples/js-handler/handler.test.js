import assert from "node:assert/strict";
import test from "node:test";

import { notifier } from "./handler.js";

const event = (more) => ({
  kind: "run",
  id: "nightly",
  status: "failed",
  success: false,
  reasonCode: "run.failed.exit_nonzero",
  json: JSON.stringify({ fields: { duration_ms: 65_000 }, reason: { summary: "exit code 3" } }),
  ...more,
});

const planned = (envelope, channel = "", failuresOnly = true) =>
  notifier
    .plan(envelope, {
      config: [
        { name: "channel", json: JSON.stringify(channel) },
        { name: "failures_only", json: JSON.stringify(failuresOnly) },
      ],
      destinations: ["hook"],
    })
    .map(({ body }) => JSON.parse(new TextDecoder().decode(body)));

test("a failure is told with what it was and how long it took", () => {
  assert.deepEqual(planned(event()), [{ text: "❌ *run/nightly* failed after 1m05s\n> exit code 3" }]);
});

test("a success is told where that is asked for, and a channel is named", () => {
  const success = event({ success: true, status: "completed", json: "{}" });
  assert.deepEqual(planned(success), []);
  assert.deepEqual(planned(success, "#ops", false), [{ text: "✅ *run/nightly* completed", channel: "#ops" }]);
});

test("what is no channel is a fault in words", () => {
  assert.throws(() => planned(event(), "the ops room"), { code: "bad_channel" });
});
