"""What the statuses of a dataset mean: it is published when its numbers look like those before."""

import statistics

from wit_world import exports

from runwarden import admit, codes, edge, fault, field, parameter, policy, refuse, status, value


class Lifecycle(exports.Lifecycle):
    """The table."""

    def describe(self):
        return policy(
            "dataset", "1.0.0", "A dataset that is published when its numbers are plausible.",
            statuses=[
                status("collected", "Is there, and nobody looked at it.", initial=True,
                       creation_code="dataset.collected.ok"),
                status("published", "Others build on it.", terminal=True, success=True),
                status("rejected", "Nobody is to build on it.", terminal=True),
            ],
            edges=[
                edge("collected", "published", required_patch=["sample"], guarded=True),
                edge("collected", "rejected"),
            ],
            fields=[field("sample", "json", "Some of its numbers."), field("usual", "number", "Their median before.")],
            parameters=[parameter("tolerance", "number", 0.2, "How far the median may be from the usual one, as a share.")],
            reason_codes=codes({
                "dataset.collected.ok": "Was collected.",
                "dataset.published.ok": "Was found plausible.",
                "dataset.rejected.operator": "Was thrown away.",
            }),
            emits_events=True,
        )


class Guard(exports.Guard):
    """Asked before a dataset is published."""

    def evaluate(self, request):
        sample = value(request.patch, "sample")
        if not isinstance(sample, list) or not all(isinstance(number, (int, float)) for number in sample):
            raise fault("no_sample", "`sample` is not a list of numbers")
        if len(sample) < 5:
            return refuse("small_sample", f"{len(sample)} numbers say nothing: give 5")
        usual = value(request.entity.fields, "usual")
        median = statistics.median(sample)
        tolerance = value(request.surroundings.parameters, "tolerance")
        if usual is not None and abs(median - usual) > tolerance * abs(usual):
            return refuse("implausible", f"the median is {median:g} and was {usual:g} before")
        return admit()
