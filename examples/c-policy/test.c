/* The guard, natively: `make test`. */
#include "runwarden.h"
#include <assert.h>

static Decision asked(const char *found) {
  NamedValue most = {TEXT("pressure_max"), TEXT("600")};
  NamedValue read = {TEXT("pressure"), {(uint8_t *)found, __builtin_strlen(found)}};
  Request request = {.surroundings.parameters = {&most, 1}, .patch = {&read, 1}};
  Decision decision;
  Fault fault;
  assert(evaluate(&request, &decision, &fault));
  return decision;
}

static bool refused(const char *found, const char *code) {
  const Decision decision = asked(found);
  return !decision.admitted && is(&decision.code, code);
}

int main(void) {
  assert(asked("600").admitted);
  assert(asked("-20").admitted);
  assert(refused("601", "pressure_high"));
  assert(refused("null", "pressure_unknown"));
  assert(refused("-", "pressure_unknown"));

  Request nothing = {0};
  Decision decision;
  Fault fault;
  assert(!evaluate(&nothing, &decision, &fault));
  return 0;
}
