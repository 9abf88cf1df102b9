/* The linker sends malloc, calloc and realloc here (--wrap); see fail_alloc.h. */
#include "base/json.h"
#include "fail_alloc.h"

#include <cjson/cJSON.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *p, size_t size);

static atomic_bool armed, hit, single;
static atomic_long left;

void fail_alloc_after(long n)
{
    atomic_store(&hit, false);
    atomic_store(&single, false);
    atomic_store(&left, n);
    atomic_store(&armed, n >= 0);
}

void fail_alloc_once(long n)
{
    fail_alloc_after(n);
    atomic_store(&single, true);
}

bool fail_alloc_hit(void)
{
    return atomic_load(&hit);
}

static bool refuse(void)
{
    if (!atomic_load(&armed)) return false;
    const long before = atomic_fetch_sub(&left, 1);
    if (before > 0 || (before < 0 && atomic_load(&single))) return false;
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

void fail_alloc_in_json(void)
{
    cJSON_InitHooks(&(cJSON_Hooks){.malloc_fn = __wrap_malloc, .free_fn = free});
}
