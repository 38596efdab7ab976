/* The guard, natively: `make test`. */
#include "runwarden.h"
#include <assert.h>

static bool admits(const char *kind) {
  Request request = {.actor.kind = {(uint8_t *)kind, __builtin_strlen(kind)}};
  Decision decision;
  Fault fault;
  assert(evaluate(&request, &decision, &fault));
  return decision.admitted;
}

int main(void) {
  assert(admits("operator"));
  assert(!admits("agent"));
  return 0;
}
