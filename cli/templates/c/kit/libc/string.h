/* What the bindings want of a C library: a component needs no other. */
#ifndef RUNWARDEN_STRING_H
#define RUNWARDEN_STRING_H

#include <stddef.h>

size_t strlen(const char *text);
void *memcpy(void *restrict to, const void *restrict from, size_t size);
void *memmove(void *to, const void *from, size_t size);
void *memset(void *memory, int byte, size_t size);
int memcmp(const void *left, const void *right, size_t size);

#endif
