/* Memory for one call. Every call gets an instance of its own, so nothing is ever given back: that is what lets a
 * descriptor be made of constants. */
#include <stdlib.h>
#include <string.h>

enum { PAGE = 65536, ALIGNMENT = 16 };

extern unsigned char __heap_base;

static unsigned char *next = &__heap_base;

void *malloc(size_t size) {
  unsigned char *start = (unsigned char *)(((size_t)next + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1));
  size_t end = (size_t)start + size;
  size_t have = __builtin_wasm_memory_size(0) * (size_t)PAGE;
  if (end < size || (end > have && __builtin_wasm_memory_grow(0, (end - have + PAGE - 1) / PAGE) == (size_t)-1)) {
    abort();
  }
  next = (unsigned char *)end;
  return start;
}

void *calloc(size_t count, size_t size) {
  if (size != 0 && count > (size_t)-1 / size) {
    abort();
  }
  return memset(malloc(count * size), 0, count * size);
}

void *realloc(void *old, size_t size) {
  void *new = malloc(size);
  /* How long the old one was is not kept: what is read past its end is overwritten by its owner. */
  return old ? memmove(new, old, size) : new;
}

void free(void *memory) { (void)memory; }

_Noreturn void abort(void) { __builtin_trap(); }

size_t strlen(const char *text) {
  size_t length = 0;
  while (text[length]) {
    length++;
  }
  return length;
}

void *memmove(void *to, const void *from, size_t size) {
  unsigned char *target = to;
  const unsigned char *source = from;
  if (target < source) {
    for (size_t at = 0; at < size; at++) {
      target[at] = source[at];
    }
  } else {
    for (size_t at = size; at > 0; at--) {
      target[at - 1] = source[at - 1];
    }
  }
  return to;
}

void *memcpy(void *restrict to, const void *restrict from, size_t size) { return memmove(to, from, size); }

void *memset(void *memory, int byte, size_t size) {
  unsigned char *target = memory;
  for (size_t at = 0; at < size; at++) {
    target[at] = (unsigned char)byte;
  }
  return memory;
}

int memcmp(const void *left, const void *right, size_t size) {
  const unsigned char *one = left, *other = right;
  for (size_t at = 0; at < size; at++) {
    if (one[at] != other[at]) {
      return one[at] < other[at] ? -1 : 1;
    }
  }
  return 0;
}
