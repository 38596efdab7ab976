import assert from "node:assert/strict";
import test from "node:test";

import { guard } from "./policy.js";

test("a person solves a ticket and no agent does", () => {
  assert.ok(guard.evaluate({ actor: { kind: "operator" } }).admitted);
  assert.equal(guard.evaluate({ actor: { kind: "agent" } }).code, "not_a_person");
});
