/* The linker sends malloc, calloc and realloc here (--wrap); see fail_alloc.h. */
#include "fail_alloc.h"

#include <stdatomic.h>
#include <stddef.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *p, size_t size);

static atomic_bool armed, hit;
static atomic_long left;

void fail_alloc_after(long n)
{
    atomic_store(&hit, false);
    atomic_store(&left, n);
    atomic_store(&armed, n >= 0);
}

bool fail_alloc_hit(void)
{
    return atomic_load(&hit);
}

static bool refuse(void)
{
    if (!atomic_load(&armed) || atomic_fetch_sub(&left, 1) > 0) return false;
    atomic_store(&hit, true);
    return true;
}

void *__wrap_malloc(size_t size)
{
    return refuse() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return refuse() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *p, size_t size)
{
    return refuse() ? NULL : __real_realloc(p, size);
}
