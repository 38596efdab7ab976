"""What is sent when something ended: one line for people, of every end that is no success."""

import json

from wit_world import exports

from runwarden import dispatch, handler, parameter, value


class Notifier(exports.Notifier):
    """The handler."""

    def describe(self):
        return handler(
            "{{name}}", "1.0.0", "One line for people about every end that is no success.", ["exec", "file"],
            [parameter("successes", "boolean", False, "Tell of successes too.")],
        )

    def plan(self, envelope, binding):
        if envelope.success and not value(binding.config, "successes"):
            # An empty plan is a plan: nobody is told, and nothing is owed.
            return []
        # A destination that is a file takes one line of JSON; a string is one.
        line = json.dumps(f"{envelope.kind}/{envelope.id} is {envelope.status} ({envelope.reason_code})")
        return [dispatch(destination, line) for destination in binding.destinations]
