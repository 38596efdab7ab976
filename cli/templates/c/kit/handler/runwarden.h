/* Short words for what the contract in wit/ calls things, and for the values they are made of. What is not named in an
 * initialiser is empty. The records themselves are in component.h. */
#ifndef RUNWARDEN_H
#define RUNWARDEN_H

#include "component.h"
#include <stdlib.h>

typedef component_string_t Text;
typedef exports_runwarden_notify_notifier_descriptor_t Descriptor;
typedef exports_runwarden_notify_notifier_parameter_t Parameter;
typedef exports_runwarden_notify_notifier_envelope_t Envelope;
typedef exports_runwarden_notify_notifier_binding_t Binding;
typedef exports_runwarden_notify_notifier_named_json_t NamedValue;
typedef exports_runwarden_notify_notifier_list_named_json_t NamedValues;
typedef exports_runwarden_notify_notifier_planned_dispatch_t Dispatch;
typedef exports_runwarden_notify_notifier_list_planned_dispatch_t Plan;
typedef exports_runwarden_notify_notifier_fault_t Fault;

/* The function that says what the handler is, and the one that is asked at every event. */
#define describe exports_runwarden_notify_notifier_describe
#define plan exports_runwarden_notify_notifier_plan

/* A constant text, as an initialiser. */
#define TEXT(constant) {(uint8_t *)(constant), sizeof(constant) - 1}

/* An array, as an initialiser of a list. */
#define LIST(array) {(array), sizeof(array) / sizeof((array)[0])}

/* Whether a text is this one. */
static inline bool is(const Text *text, const char *constant) {
  return text->len == __builtin_strlen(constant) && __builtin_memcmp(text->ptr, constant, text->len) == 0;
}

/* The JSON of a name in a configuration; NULL where it is not there. */
static inline const Text *value(NamedValues values, const char *name) {
  for (size_t at = 0; at < values.len; at++) {
    if (is(&values.ptr[at].name, name)) {
      return &values.ptr[at].json;
    }
  }
  return NULL;
}

/* Texts one after the other. */
static inline Text joined(const Text *parts, size_t count) {
  Text whole = {0};
  for (size_t at = 0; at < count; at++) {
    whole.len += parts[at].len;
  }
  uint8_t *end = whole.ptr = malloc(whole.len + 1);
  for (size_t at = 0; whole.ptr != NULL && at < count; at++) {
    __builtin_memcpy(end, parts[at].ptr, parts[at].len);
    end += parts[at].len;
  }
  return whole;
}

#endif
