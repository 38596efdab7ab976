/* What is sent when something ended: one line for people, of every end that is no success. */
#include "runwarden.h"

static Text transports[] = {TEXT("exec"), TEXT("file")};

static Parameter parameters[] = {
    {.name = TEXT("successes"),
     .kind = TEXT("boolean"),
     .default_ = TEXT("false"),
     .summary = TEXT("Tell of successes too.")},
};

void describe(Descriptor *descriptor) {
  *descriptor = (Descriptor){
      .name = TEXT("{{name}}"),
      .version = TEXT("1.0.0"),
      .summary = TEXT("One line for people about every end that is no success."),
      .config = LIST(parameters),
      .transports = LIST(transports),
  };
}

bool plan(Envelope *envelope, Binding *binding, Plan *planned, Fault *fault) {
  (void)fault; /* For when the handler itself cannot answer: fill it and return false. */
  *planned = (Plan){0};
  const Text *successes = value(binding->config, "successes");
  if (envelope->success && (successes == NULL || !is(successes, "true"))) {
    /* An empty plan is a plan: nobody is told, and nothing is owed. */
    return true;
  }
  /* A destination that is a file takes one line of JSON; a string is one. */
  const Text parts[] = {TEXT("\""),        envelope->kind, TEXT("/"),            envelope->id, TEXT(" is "),
                        envelope->status, TEXT(" ("),     envelope->reason_code, TEXT(")\"")};
  const Text line = joined(parts, sizeof(parts) / sizeof(parts[0]));
  planned->ptr = calloc(binding->destinations.len, sizeof(Dispatch));
  for (size_t at = 0; at < binding->destinations.len; at++) {
    planned->ptr[at].destination = binding->destinations.ptr[at];
    planned->ptr[at].body.ptr = line.ptr;
    planned->ptr[at].body.len = line.len;
  }
  planned->len = binding->destinations.len;
  return true;
}
