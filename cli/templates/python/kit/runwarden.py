"""Short ways to write what a policy or handler gives: what is not said is empty. The records themselves, with every
field, are in `wit_world`, which the build writes from wit/."""

import json
from dataclasses import replace


def policy(kind, version, summary, **more):
    """A descriptor: everything about a kind that is data."""
    from wit_world.exports import lifecycle

    nothing = dict(
        kind=kind, name=kind, version=version, summary=summary,
        statuses=[], edges=[], same_status="append", fields=[], reason_codes=[],
        emits_events=False, measures_end=False, execution=None, verdicts=[], kill=[],
        lease=None, delivery=None, retry=None, health=[], parameters=[],
        reads=lifecycle.Reads(children=False, history=0, tags=False, last_output_bytes=0, ext=[]),
        migrations=[], ext=[],
    )
    return lifecycle.Descriptor(**{**nothing, **more})


def status(name, summary, **more):
    """One word of the vocabulary. `more`: initial, creation_code, terminal, success, announced."""
    from wit_world.exports import lifecycle

    plain = lifecycle.Status(
        name=name, summary=summary, initial=False, creation_code=None,
        terminal=False, success=False, announced=False, ext=[],
    )
    return replace(plain, **more)


def edge(from_, to, **more):
    """A move. `more`: actors, required_patch, required_guards, guarded."""
    from wit_world.exports import lifecycle

    plain = lifecycle.Edge(
        from_=from_, to=to, actors=[], required_patch=[], required_guards=[], guarded=False, ext=[],
    )
    return replace(plain, **more)


def field(name, kind, summary):
    """A field that a transition may patch: integer, number, text, boolean, timestamp or json."""
    from wit_world.exports import lifecycle

    return lifecycle.Field(name=name, kind=kind, summary=summary, ext=[])


def codes(table):
    """Reason codes with what they mean: `{"post.done.ok": "Was found good."}`."""
    from wit_world.exports import lifecycle

    return [lifecycle.ReasonCode(code=code, summary=summary) for code, summary in table.items()]


def parameter(name, kind, default, summary):
    """What an operator may set. A default of None must be set."""
    from wit_world.imports import types

    return types.Parameter(name=name, kind=kind, default=json.dumps(default), choices=[], summary=summary, ext=[])


def admit():
    """A guard lets it pass."""
    from wit_world.exports import guard

    return guard.Decision(admitted=True, code="", message="", ext=[])


def refuse(code, message):
    """A guard refuses: a code for programs (lower-case words joined by underscores), words for people."""
    from wit_world.exports import guard

    return guard.Decision(admitted=False, code=code, message=message, ext=[])


def fault(code, message):
    """Raise it to say that the component itself cannot answer. Any other exception is a trap without words."""
    from componentize_py_types import Err
    from wit_world.imports import types

    return Err(types.Fault(code=code, message=message, hint=None, ext=[]))


def value(entries, name):
    """The value of a name in a patch, in fields, parameters or a configuration; None where it is not there."""
    return next((json.loads(entry.json) for entry in entries if entry.name == name), None)


def handler(name, version, summary, transports, config=()):
    """A handler's descriptor. `transports`: exec, webhook, file."""
    from wit_world.exports import notifier

    return notifier.Descriptor(
        name=name, version=version, summary=summary, config=list(config), transports=transports, ext=[],
    )


def dispatch(destination, text, **more):
    """A dispatch to one of the binding's destinations. `more`: dedup_key, deadline, wants_acknowledgement."""
    from wit_world.exports import notifier

    plain = notifier.PlannedDispatch(
        destination=destination, body=text.encode(), dedup_key=None, deadline=None,
        wants_acknowledgement=False, ext=[],
    )
    return replace(plain, **more)
