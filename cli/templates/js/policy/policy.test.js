import assert from "node:assert/strict";
import test from "node:test";

import { guard, lifecycle } from "./policy.js";

const asked = (author, reviewer) => ({
  entity: { fields: [{ name: "author", json: JSON.stringify(author) }] },
  patch: [{ name: "reviewer", json: JSON.stringify(reviewer) }],
});

test("nobody looks at their own work", () => {
  assert.equal(guard.evaluate(asked("ann", "ann")).code, "same_person");
  assert.ok(guard.evaluate(asked("ann", "bob")).admitted);
});

test("what is done stays done", () => {
  assert.deepEqual(lifecycle.describe().edges.filter((edge) => edge.from === "done"), []);
});
