/* The logic, natively: `make test`. */
#include "runwarden.h"
#include <assert.h>

static Plan planned(bool success, const char *successes) {
  NamedValue config = {TEXT("successes"), {(uint8_t *)successes, __builtin_strlen(successes)}};
  Text destinations[] = {TEXT("mail"), TEXT("journal")};
  Envelope envelope = {
      .kind = TEXT("run"),
      .id = TEXT("one"),
      .status = TEXT("failed"),
      .reason_code = TEXT("run.failed.exit_nonzero"),
      .success = success,
  };
  Binding binding = {.config = {&config, 1}, .destinations = LIST(destinations)};
  Plan made;
  Fault fault;
  assert(plan(&envelope, &binding, &made, &fault));
  return made;
}

int main(void) {
  const Plan failure = planned(false, "false");
  assert(failure.len == 2);
  const Text line = {failure.ptr[0].body.ptr, failure.ptr[0].body.len};
  assert(is(&line, "\"run/one is failed (run.failed.exit_nonzero)\""));

  assert(planned(true, "false").len == 0);
  assert(planned(true, "true").len == 2);
  return 0;
}
