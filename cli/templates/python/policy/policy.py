"""What the statuses of a {{kind}} mean."""

from wit_world import exports

from runwarden import admit, codes, edge, field, policy, refuse, status, value


class Lifecycle(exports.Lifecycle):
    """The table."""

    def describe(self):
        return policy(
            "{{kind}}", "1.0.0", "A {{kind}}.",
            name="{{name}}",
            statuses=[
                status("open", "Is being worked on.", initial=True, creation_code="{{kind}}.open.created"),
                status("review", "Waits for somebody to look at it.", announced=True),
                status("done", "Is as it should be.", terminal=True, success=True),
                status("dropped", "Is not wanted any more.", terminal=True),
            ],
            edges=[
                edge("open", "review"),
                edge("review", "open"),
                # What data cannot say, the guard below does.
                edge("review", "done", required_patch=["reviewer"], guarded=True),
                edge("open", "dropped"),
                edge("review", "dropped"),
            ],
            fields=[field("author", "text", "Who did the work."), field("reviewer", "text", "Who looked at it.")],
            reason_codes=codes({
                "{{kind}}.open.created": "Was begun.",
                "{{kind}}.open.again": "More is to be done.",
                "{{kind}}.review.asked": "Somebody is to look at it.",
                "{{kind}}.done.ok": "Was found good.",
                "{{kind}}.dropped.operator": "Was given up.",
            }),
            emits_events=True,
        )


class Guard(exports.Guard):
    """Asked on edges marked `guarded` alone. It may refuse what the table allows, never allow what the table forbids."""

    def evaluate(self, request):
        reviewer = value(request.patch, "reviewer")
        if reviewer is not None and reviewer == value(request.entity.fields, "author"):
            return refuse("same_person", "nobody looks at their own work")
        return admit()
