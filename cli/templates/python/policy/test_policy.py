"""The logic, natively: `python3 -m unittest`, once `runwarden policy build` wrote the bindings."""

import sys
import unittest
from types import SimpleNamespace as Record

sys.path[:0] = ["kit", "build/bindings"]

from policy import Guard, Lifecycle  # noqa: E402


def asked(author, reviewer):
    return Record(
        entity=Record(fields=[Record(name="author", json=f'"{author}"')]),
        patch=[Record(name="reviewer", json=f'"{reviewer}"')],
    )


class Policy(unittest.TestCase):
    def test_nobody_looks_at_their_own_work(self):
        self.assertEqual(Guard().evaluate(asked("ann", "ann")).code, "same_person")
        self.assertTrue(Guard().evaluate(asked("ann", "bob")).admitted)

    def test_what_is_done_stays_done(self):
        self.assertNotIn("done", [edge.from_ for edge in Lifecycle().describe().edges])


if __name__ == "__main__":
    unittest.main()
