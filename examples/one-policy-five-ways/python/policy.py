"""What the statuses of a ticket mean."""

from wit_world import exports

from runwarden import admit, codes, edge, field, policy, refuse, status


class Lifecycle(exports.Lifecycle):
    """The table."""

    def describe(self):
        return policy(
            "ticket", "1.0.0", "A ticket that people and agents work on.",
            statuses=[
                status("open", "Nobody works on it.", initial=True, creation_code="ticket.open.created"),
                status("working", "Somebody works on it."),
                status("solved", "An operator saw that it is solved.", terminal=True, success=True),
                status("declined", "Nothing is done about it.", terminal=True),
            ],
            edges=[
                edge("open", "working"),
                edge("open", "declined"),
                edge("working", "open"),
                edge("working", "declined"),
                edge("working", "solved", required_patch=["resolution"], guarded=True),
            ],
            fields=[field("resolution", "text", "What was done.")],
            reason_codes=codes({
                "ticket.open.created": "Was written.",
                "ticket.open.returned": "Was given back.",
                "ticket.working.taken": "Was taken up.",
                "ticket.solved.ok": "Is solved.",
                "ticket.declined.operator": "Is not worth it.",
            }),
            emits_events=True,
        )


class Guard(exports.Guard):
    """Asked before a ticket is solved."""

    def evaluate(self, request):
        if request.actor.kind in ("operator", "admin"):
            return admit()
        return refuse("not_a_person", "a person sees that a ticket is solved")
