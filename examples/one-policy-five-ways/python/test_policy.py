"""The guard, natively: `python3 -m unittest`, once `runwarden policy build` wrote the bindings."""

import sys
import unittest
from types import SimpleNamespace as Record

sys.path[:0] = ["kit", "build/bindings"]

from policy import Guard  # noqa: E402


class Policy(unittest.TestCase):
    def test_a_person_solves_a_ticket_and_no_agent_does(self):
        said = {kind: Guard().evaluate(Record(actor=Record(kind=kind))) for kind in ("operator", "agent")}
        self.assertTrue(said["operator"].admitted)
        self.assertEqual(said["agent"].code, "not_a_person")


if __name__ == "__main__":
    unittest.main()
