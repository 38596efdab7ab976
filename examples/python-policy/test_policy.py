"""The guard, natively: `python3 -m unittest`, once `runwarden policy build` wrote the bindings."""

import json
import sys
import unittest
from types import SimpleNamespace as Record

sys.path[:0] = ["kit", "build/bindings"]

from componentize_py_types import Err  # noqa: E402

from policy import Guard  # noqa: E402


def named(**values):
    return [Record(name=name, json=json.dumps(value)) for name, value in values.items()]


def asked(sample, usual=100):
    request = Record(
        patch=named(sample=sample),
        entity=Record(fields=named(usual=usual)),
        surroundings=Record(parameters=named(tolerance=0.2)),
    )
    return Guard().evaluate(request)


class Policy(unittest.TestCase):
    def test_what_is_near_the_usual_median_is_published(self):
        self.assertTrue(asked([90, 95, 101, 110, 400]).admitted)

    def test_what_is_far_from_it_is_not(self):
        self.assertEqual(asked([1, 2, 3, 4, 5]).code, "implausible")

    def test_few_numbers_say_nothing(self):
        self.assertEqual(asked([100]).code, "small_sample")

    def test_what_is_no_list_of_numbers_is_a_fault(self):
        with self.assertRaises(Err):
            asked("many")


if __name__ == "__main__":
    unittest.main()
