/* An arena: two stacks of zeroed chunks, one shared by small allocations and one where every
 * large allocation has a chunk of its own, so that a large one never strands the rest of a small
 * chunk. A mark remembers the top of both. */
#include "support.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif

#define ALIGN ((size_t)64)
#ifdef PARE_CHUNK_BYTES /* small ones for fuzzing, where most runs need few bytes */
#define CHUNK_BYTES ((size_t)PARE_CHUNK_BYTES)
#else
#define CHUNK_BYTES ((size_t)256 * 1024)
#endif
#define LARGE_BYTES (CHUNK_BYTES / 4)
#define LARGE_PAGE  ((size_t)2 << 20)

/* Under AddressSanitizer what is not handed out is poisoned and neighbours are kept apart: an
 * overrun inside an arena is then found like one of malloc. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#endif
#if defined(WITH_ASAN)
#include <sanitizer/asan_interface.h>
#define REDZONE ALIGN
static void hide(void *p, size_t bytes)
{
    __asan_poison_memory_region(p, bytes);
}
static void show(void *p, size_t bytes)
{
    __asan_unpoison_memory_region(p, bytes);
}
#else
#define REDZONE ((size_t)0)
static void hide(void *p, size_t bytes)
{
    (void)p, (void)bytes;
}
static void show(void *p, size_t bytes)
{
    (void)p, (void)bytes;
}
#endif

typedef struct chunk {
    struct chunk *below;
    uint8_t *data; /* first aligned byte */
    size_t size, used;
} chunk;

struct pare_arena {
    chunk *small, *large;
};

bool pare_mul(size_t *out, size_t a, size_t b)
{
    size_t product;
    if (__builtin_mul_overflow(a, b, &product)) return false;
    *out = product;
    return true;
}

bool pare_add(size_t *out, size_t a, size_t b)
{
    size_t sum;
    if (__builtin_add_overflow(a, b, &sum)) return false;
    *out = sum;
    return true;
}

pare_arena *pare_arena_new(void)
{
    return calloc(1, sizeof(pare_arena));
}

/* Large pages for a large chunk: only a wish, nothing depends on it. */
static void wish_large_pages(void *data, size_t size)
{
#if defined(MADV_HUGEPAGE)
    (void)madvise(data, size / LARGE_PAGE * LARGE_PAGE, MADV_HUGEPAGE);
#else
    (void)data, (void)size;
#endif
}

static chunk *chunk_push(chunk **top, size_t size)
{
    const size_t align = size >= 2 * LARGE_PAGE ? LARGE_PAGE : ALIGN;
    size_t total;
    if (!pare_add(&total, size, sizeof(chunk) + align)) return NULL;
    chunk *c = calloc(1, total);
    if (!c) return NULL;
    const uintptr_t first = (uintptr_t)(c + 1);
    c->data = (uint8_t *)(c + 1) + ((align - first % align) % align);
    if (align == LARGE_PAGE) wish_large_pages(c->data, size);
    c->size = size;
    c->below = *top;
    *top = c;
    hide(c->data, size);
    return c;
}

static void chunks_pop_to(chunk **top, const chunk *stop)
{
    while (*top != stop) {
        PARE_ASSERT(*top != NULL); /* a mark of another arena, or one already passed */
        chunk *c = *top;
        *top = c->below;
        show(c->data, c->size);
        free(c);
    }
}

void pare_arena_free(pare_arena *a)
{
    if (!a) return;
    chunks_pop_to(&a->small, NULL);
    chunks_pop_to(&a->large, NULL);
    free(a);
}

void *pare_alloc(pare_arena *a, size_t count, size_t size)
{
    size_t bytes, padded;
    if (!pare_mul(&bytes, count, size)) return NULL;
    /* Zero bytes still get an address of their own: NULL means only "no memory". */
    if (!pare_add(&padded, bytes, ALIGN - 1 + REDZONE + (bytes == 0))) return NULL;
    padded -= padded % ALIGN;
    chunk *c = padded > LARGE_BYTES ? chunk_push(&a->large, padded) : a->small;
    if (padded <= LARGE_BYTES && (!c || c->size - c->used < padded))
        c = chunk_push(&a->small, CHUNK_BYTES);
    if (!c) return NULL;
    uint8_t *p = c->data + c->used;
    c->used += padded;
    show(p, bytes);
    return p;
}

char *pare_strndup(pare_arena *a, const char *s, size_t n)
{
    const size_t len = strnlen(s, n);
    char *copy = pare_alloc(a, len + 1, 1);
    if (copy) memcpy(copy, s, len);
    return copy;
}

char *pare_strdup(pare_arena *a, const char *s)
{
    return pare_strndup(a, s, strlen(s));
}

char *pare_sprintf(pare_arena *a, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    const int n = vsnprintf(NULL, 0, fmt, args);
    char *text = n < 0 ? NULL : pare_alloc(a, (size_t)n + 1, 1);
    if (text) vsnprintf(text, (size_t)n + 1, fmt, again);
    va_end(again);
    va_end(args);
    return text;
}

pare_mark pare_arena_mark(const pare_arena *a)
{
    return (pare_mark){.chunk = a->small, .large = a->large, .used = a->small ? a->small->used : 0};
}

void pare_arena_reset(pare_arena *a, pare_mark m)
{
    chunks_pop_to(&a->large, m.large);
    chunks_pop_to(&a->small, m.chunk);
    chunk *c = a->small;
    if (!c) return;
    PARE_ASSERT(m.used <= c->used);
    uint8_t *freed = c->data + m.used;
    const size_t bytes = c->used - m.used;
    show(freed, bytes);
    memset(freed, 0, bytes); /* pare_alloc promises zeros */
    hide(freed, bytes);
    c->used = m.used;
}
