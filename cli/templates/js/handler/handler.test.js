import assert from "node:assert/strict";
import test from "node:test";

import { notifier } from "./handler.js";

const planned = (success, successes) =>
  notifier.plan(
    { kind: "run", id: "one", status: "failed", reasonCode: "run.failed.exit_nonzero", success },
    { config: [{ name: "successes", json: JSON.stringify(successes) }], destinations: ["mail", "journal"] },
  );

test("an end that is no success goes to every destination", () => {
  const plan = planned(false, false);
  assert.deepEqual(plan.map((dispatch) => dispatch.destination), ["mail", "journal"]);
  assert.equal(new TextDecoder().decode(plan[0].body), '"run/one is failed (run.failed.exit_nonzero)"');
});

test("a success is told only where that is asked for", () => {
  assert.deepEqual([planned(true, false).length, planned(true, true).length], [0, 2]);
});
