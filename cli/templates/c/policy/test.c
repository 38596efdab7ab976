/* The logic, natively: `make test`. */
#include "runwarden.h"
#include <assert.h>

static bool admits(const char *author, const char *reviewer) {
  NamedValue before = {TEXT("author"), {(uint8_t *)author, __builtin_strlen(author)}};
  NamedValue patched = {TEXT("reviewer"), {(uint8_t *)reviewer, __builtin_strlen(reviewer)}};
  Request request = {.entity.fields = {&before, 1}, .patch = {&patched, 1}};
  Decision decision;
  Fault fault;
  assert(evaluate(&request, &decision, &fault));
  return decision.admitted;
}

int main(void) {
  assert(!admits("\"ann\"", "\"ann\""));
  assert(admits("\"ann\"", "\"bob\""));

  Descriptor descriptor;
  describe(&descriptor);
  for (size_t at = 0; at < descriptor.edges.len; at++) {
    assert(!is(&descriptor.edges.ptr[at].from, "done"));
  }
  return 0;
}
