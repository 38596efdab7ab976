/* What the statuses of a {{kind}} mean. */
#include "runwarden.h"

static Status statuses[] = {
    {.name = TEXT("open"),
     .summary = TEXT("Is being worked on."),
     .initial = true,
     .creation_code = SOME("{{kind}}.open.created")},
    {.name = TEXT("review"), .summary = TEXT("Waits for somebody to look at it."), .announced = true},
    {.name = TEXT("done"), .summary = TEXT("Is as it should be."), .terminal = true, .success = true},
    {.name = TEXT("dropped"), .summary = TEXT("Is not wanted any more."), .terminal = true},
};

static Text reviewer[] = {TEXT("reviewer")};

static Edge edges[] = {
    {.from = TEXT("open"), .to = TEXT("review")},
    {.from = TEXT("review"), .to = TEXT("open")},
    /* What data cannot say, the guard below does. */
    {.from = TEXT("review"), .to = TEXT("done"), .required_patch = LIST(reviewer), .guarded = true},
    {.from = TEXT("open"), .to = TEXT("dropped")},
    {.from = TEXT("review"), .to = TEXT("dropped")},
};

static Field fields[] = {
    {.name = TEXT("author"), .kind = TEXT("text"), .summary = TEXT("Who did the work.")},
    {.name = TEXT("reviewer"), .kind = TEXT("text"), .summary = TEXT("Who looked at it.")},
};

static ReasonCode codes[] = {
    {TEXT("{{kind}}.open.created"), TEXT("Was begun.")},
    {TEXT("{{kind}}.open.again"), TEXT("More is to be done.")},
    {TEXT("{{kind}}.review.asked"), TEXT("Somebody is to look at it.")},
    {TEXT("{{kind}}.done.ok"), TEXT("Was found good.")},
    {TEXT("{{kind}}.dropped.operator"), TEXT("Was given up.")},
};

void describe(Descriptor *descriptor) {
  *descriptor = (Descriptor){
      .kind = TEXT("{{kind}}"),
      .name = TEXT("{{name}}"),
      .version = TEXT("1.0.0"),
      .summary = TEXT("A {{kind}}."),
      .statuses = LIST(statuses),
      .edges = LIST(edges),
      .same_status = TEXT("append"),
      .fields = LIST(fields),
      .reason_codes = LIST(codes),
      .emits_events = true,
  };
}

/* Asked on edges marked guarded alone. It may refuse what the table allows, never allow what the table forbids. */
bool evaluate(Request *request, Decision *decision, Fault *fault) {
  (void)fault; /* For when the policy itself cannot answer: fill it and return false. */
  const NamedValues before = {request->entity.fields.ptr, request->entity.fields.len};
  const Text *author = value(before, "author");
  const Text *looked = value(request->patch, "reviewer");
  if (author != NULL && looked != NULL && equal(author, looked)) {
    return refuse(decision, "same_person", "nobody looks at their own work");
  }
  return admit(decision);
}
