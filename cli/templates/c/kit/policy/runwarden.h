/* Short words for what the contract in wit/ calls things, and for the values they are made of. What is not named in an
 * initialiser is empty. The records themselves are in component.h. */
#ifndef RUNWARDEN_H
#define RUNWARDEN_H

#include "component.h"

typedef component_string_t Text;
typedef exports_runwarden_policy_lifecycle_descriptor_t Descriptor;
typedef exports_runwarden_policy_lifecycle_status_t Status;
typedef exports_runwarden_policy_lifecycle_edge_t Edge;
typedef exports_runwarden_policy_lifecycle_field_t Field;
typedef exports_runwarden_policy_lifecycle_reason_code_t ReasonCode;
typedef exports_runwarden_policy_lifecycle_parameter_t Parameter;
typedef exports_runwarden_policy_guard_request_t Request;
typedef exports_runwarden_policy_guard_decision_t Decision;
typedef exports_runwarden_policy_guard_named_json_t NamedValue;
typedef exports_runwarden_policy_guard_list_named_json_t NamedValues;
typedef exports_runwarden_policy_guard_fault_t Fault;

/* The function that says what the policy is, and the one that is asked on guarded edges. */
#define describe exports_runwarden_policy_lifecycle_describe
#define evaluate exports_runwarden_policy_guard_evaluate

/* A constant text, as an initialiser. */
#define TEXT(constant) {(uint8_t *)(constant), sizeof(constant) - 1}

/* A constant text that is there, for what may be none. */
#define SOME(constant) {true, TEXT(constant)}

/* An array, as an initialiser of a list. */
#define LIST(array) {(array), sizeof(array) / sizeof((array)[0])}

/* Whether two texts are equal. */
static inline bool equal(const Text *one, const Text *other) {
  return one->len == other->len && __builtin_memcmp(one->ptr, other->ptr, one->len) == 0;
}

/* Whether a text is this one. */
static inline bool is(const Text *text, const char *constant) {
  const Text other = {(uint8_t *)constant, __builtin_strlen(constant)};
  return equal(text, &other);
}

/* The JSON of a name in a patch, in guards or parameters; NULL where it is not there. The fields of an entity have a type
 * of their own with the same content: give `(NamedValues){entity.fields.ptr, entity.fields.len}`. */
static inline const Text *value(NamedValues values, const char *name) {
  for (size_t at = 0; at < values.len; at++) {
    if (is(&values.ptr[at].name, name)) {
      return &values.ptr[at].json;
    }
  }
  return NULL;
}

/* Lets it pass. */
static inline bool admit(Decision *decision) {
  *decision = (Decision){.admitted = true};
  return true;
}

/* Refuses: a code for programs (lower-case words joined by underscores), words for people. */
static inline bool refuse(Decision *decision, const char *code, const char *message) {
  *decision = (Decision){
      .code = {(uint8_t *)code, __builtin_strlen(code)},
      .message = {(uint8_t *)message, __builtin_strlen(message)},
  };
  return true;
}

#endif
