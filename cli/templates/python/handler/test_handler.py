"""The logic, natively: `python3 -m unittest`, once `runwarden policy build` wrote the bindings."""

import json
import sys
import unittest
from types import SimpleNamespace as Record

sys.path[:0] = ["kit", "build/bindings"]

from handler import Notifier  # noqa: E402


def planned(success, successes):
    event = Record(kind="run", id="one", status="failed", reason_code="run.failed.exit_nonzero", success=success)
    config = [Record(name="successes", json=json.dumps(successes))]
    return Notifier().plan(event, Record(config=config, destinations=["mail", "journal"]))


class Handler(unittest.TestCase):
    def test_an_end_that_is_no_success_goes_to_every_destination(self):
        plan = planned(False, False)
        self.assertEqual([dispatch.destination for dispatch in plan], ["mail", "journal"])
        self.assertEqual(plan[0].body, b'"run/one is failed (run.failed.exit_nonzero)"')

    def test_a_success_is_told_only_where_that_is_asked_for(self):
        self.assertEqual((len(planned(True, False)), len(planned(True, True))), (0, 2))


if __name__ == "__main__":
    unittest.main()
