/* What the statuses of a valve mean: it is opened when the pressure behind it was read and is low enough. */
#include "runwarden.h"

static Status statuses[] = {
    {.name = TEXT("shut"), .summary = TEXT("Nothing flows."), .initial = true, .creation_code = SOME("valve.shut.built")},
    {.name = TEXT("open"), .summary = TEXT("Something may flow."), .announced = true},
    {.name = TEXT("scrapped"), .summary = TEXT("Was taken out."), .terminal = true},
};

static Text pressure[] = {TEXT("pressure")};

static Edge edges[] = {
    {.from = TEXT("shut"), .to = TEXT("open"), .required_patch = LIST(pressure), .guarded = true},
    {.from = TEXT("open"), .to = TEXT("shut")},
    {.from = TEXT("shut"), .to = TEXT("scrapped")},
};

static Field fields[] = {
    {.name = TEXT("pressure"), .kind = TEXT("integer"), .summary = TEXT("Behind it, in kilopascals.")},
};

static Parameter parameters[] = {
    {.name = TEXT("pressure_max"),
     .kind = TEXT("integer"),
     .default_ = TEXT("600"),
     .summary = TEXT("It is opened up to this, in kilopascals.")},
};

static ReasonCode codes[] = {
    {TEXT("valve.shut.built"), TEXT("Was built in.")},
    {TEXT("valve.shut.asked"), TEXT("Was shut.")},
    {TEXT("valve.open.asked"), TEXT("Was opened.")},
    {TEXT("valve.scrapped.worn"), TEXT("Was worn out.")},
};

void describe(Descriptor *descriptor) {
  *descriptor = (Descriptor){
      .kind = TEXT("valve"),
      .name = TEXT("valve"),
      .version = TEXT("1.0.0"),
      .summary = TEXT("A valve that is opened at low pressure."),
      .statuses = LIST(statuses),
      .edges = LIST(edges),
      .same_status = TEXT("reject"),
      .fields = LIST(fields),
      .reason_codes = LIST(codes),
      .parameters = LIST(parameters),
      .emits_events = true,
  };
}

/* The whole number that a JSON text is; false if it is none, or one that no pressure is. */
static bool whole(const Text *json, int64_t *number) {
  enum { DIGITS_MAX = 9 };
  const bool negative = json != NULL && json->len > 0 && json->ptr[0] == '-';
  if (json == NULL || json->len == negative || json->len > DIGITS_MAX) {
    return false;
  }
  *number = 0;
  for (size_t at = negative; at < json->len; at++) {
    if (json->ptr[at] < '0' || json->ptr[at] > '9') {
      return false;
    }
    *number = *number * 10 + (json->ptr[at] - '0');
  }
  if (negative) {
    *number = -*number;
  }
  return true;
}

bool evaluate(Request *request, Decision *decision, Fault *fault) {
  const NamedValues set = {request->surroundings.parameters.ptr, request->surroundings.parameters.len};
  int64_t found, most;
  if (!whole(value(set, "pressure_max"), &most)) {
    *fault = (Fault){.code = TEXT("bad_parameter"), .message = TEXT("pressure_max is no pressure")};
    return false;
  }
  if (!whole(value(request->patch, "pressure"), &found)) {
    return refuse(decision, "pressure_unknown", "nobody read the pressure");
  }
  return found > most ? refuse(decision, "pressure_high", "the pressure is too high") : admit(decision);
}
