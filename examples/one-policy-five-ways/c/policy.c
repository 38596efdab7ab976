/* What the statuses of a ticket mean. */
#include "runwarden.h"

static Status statuses[] = {
    {.name = TEXT("open"),
     .summary = TEXT("Nobody works on it."),
     .initial = true,
     .creation_code = SOME("ticket.open.created")},
    {.name = TEXT("working"), .summary = TEXT("Somebody works on it.")},
    {.name = TEXT("solved"),
     .summary = TEXT("An operator saw that it is solved."),
     .terminal = true,
     .success = true},
    {.name = TEXT("declined"), .summary = TEXT("Nothing is done about it."), .terminal = true},
};

static Text resolution[] = {TEXT("resolution")};

static Edge edges[] = {
    {.from = TEXT("open"), .to = TEXT("working")},
    {.from = TEXT("open"), .to = TEXT("declined")},
    {.from = TEXT("working"), .to = TEXT("open")},
    {.from = TEXT("working"), .to = TEXT("declined")},
    {.from = TEXT("working"), .to = TEXT("solved"), .required_patch = LIST(resolution), .guarded = true},
};

static Field fields[] = {
    {.name = TEXT("resolution"), .kind = TEXT("text"), .summary = TEXT("What was done.")},
};

static ReasonCode codes[] = {
    {TEXT("ticket.open.created"), TEXT("Was written.")},
    {TEXT("ticket.open.returned"), TEXT("Was given back.")},
    {TEXT("ticket.working.taken"), TEXT("Was taken up.")},
    {TEXT("ticket.solved.ok"), TEXT("Is solved.")},
    {TEXT("ticket.declined.operator"), TEXT("Is not worth it.")},
};

void describe(Descriptor *descriptor) {
  *descriptor = (Descriptor){
      .kind = TEXT("ticket"),
      .name = TEXT("ticket"),
      .version = TEXT("1.0.0"),
      .summary = TEXT("A ticket that people and agents work on."),
      .statuses = LIST(statuses),
      .edges = LIST(edges),
      .same_status = TEXT("append"),
      .fields = LIST(fields),
      .reason_codes = LIST(codes),
      .emits_events = true,
  };
}

bool evaluate(Request *request, Decision *decision, Fault *fault) {
  (void)fault;
  const Text *kind = &request->actor.kind;
  if (is(kind, "operator") || is(kind, "admin")) {
    return admit(decision);
  }
  return refuse(decision, "not_a_person", "a person sees that a ticket is solved");
}
