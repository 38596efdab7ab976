/* What the bindings want of a C library: a component needs no other. */
#ifndef RUNWARDEN_STDLIB_H
#define RUNWARDEN_STDLIB_H

#include <stddef.h>

void *malloc(size_t size);
void *calloc(size_t count, size_t size);
void *realloc(void *old, size_t size);
void free(void *memory);
_Noreturn void abort(void);

#endif
