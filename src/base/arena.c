/* arena.c - memory that is freed all at once, or back to a mark.
 *
 * An arena is two stacks of zeroed chunks: small allocations share chunks, every large allocation
 * has a chunk of its own, so that it never wastes the rest of a small one. A mark remembers the top
 * of both stacks.
 *
 * The first chunk of an arena is small and the next ones are four times as large each, up to
 * CHUNK_BYTES: a pass over a small input then stays below malloc's limit for giving memory back to
 * the system, which would cost more than the pass. */
#include "large_pages.h"
#include "support.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#ifdef PARE_CHUNK_BYTES /* small ones for fuzzing, where most runs need few bytes */
#define CHUNK_BYTES ((size_t)PARE_CHUNK_BYTES)
#else
#define CHUNK_BYTES ((size_t)256 * 1024)
#endif
#define LARGE_BYTES (CHUNK_BYTES / 4)
#define FIRST_BYTES (CHUNK_BYTES / 16)

/* Under AddressSanitizer, bytes that are not handed out are poisoned and allocations do not touch:
 * an overrun inside an arena is then found like one of malloc. */
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
#define REDZONE BLOCK_ALIGN
#else
#define REDZONE                           ((size_t)0)
#define ASAN_POISON_MEMORY_REGION(p, n)   ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif

typedef struct chunk {
    struct chunk *below;
    uint8_t *data; /* first aligned byte */
    size_t size, used;
} chunk;

/* What is to be done when the memory around it goes; it lies in the arena itself. */
typedef struct cleanup {
    struct cleanup *below;
    void (*fn)(void *self);
    void *self;
} cleanup;

struct pare_arena {
    chunk *small, *large;
    cleanup *cleanups;
    atomic_int holders; /* beside the one that made it */
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

static chunk *push_chunk(chunk **stack, size_t size)
{
    size_t total;
    if (!pare_add(&total, size, sizeof(chunk) + block_align(size))) return NULL;
    chunk *c = calloc(1, total);
    if (!c) return NULL;
    *c = (chunk){.below = *stack, .data = align_block(c + 1, size), .size = size};
    *stack = c;
    ASAN_POISON_MEMORY_REGION(c->data, size);
    return c;
}

static void pop_chunks_to(chunk **stack, const chunk *stop)
{
    while (*stack != stop) {
        PARE_ASSERT(*stack != NULL); /* a mark of another arena, or one already passed */
        chunk *c = *stack;
        *stack = c->below;
        ASAN_UNPOISON_MEMORY_REGION(c->data, c->size);
        free(c);
    }
}

pare_arena *pare_arena_retain(pare_arena *a)
{
    atomic_fetch_add(&a->holders, 1);
    return a;
}

static void clean_up_to(pare_arena *a, const cleanup *stop)
{
    while (a->cleanups != stop) {
        PARE_ASSERT(a->cleanups != NULL);
        cleanup *const c = a->cleanups;
        a->cleanups = c->below;
        c->fn(c->self);
    }
}

bool pare_arena_on_free(pare_arena *a, void (*fn)(void *self), void *self)
{
    cleanup *const c = pare_alloc(a, 1, sizeof *c);
    if (!c) return false;
    *c = (cleanup){a->cleanups, fn, self};
    a->cleanups = c;
    return true;
}

void pare_arena_free(pare_arena *a)
{
    if (!a || atomic_fetch_sub(&a->holders, 1) > 0) return;
    clean_up_to(a, NULL);
    pop_chunks_to(&a->small, NULL);
    pop_chunks_to(&a->large, NULL);
    free(a);
}

void *pare_alloc(pare_arena *a, size_t count, size_t size)
{
    size_t bytes, padded;
    if (!pare_mul(&bytes, count, size)) return NULL;
    /* Zero bytes still get an address of their own: NULL means only "no memory". */
    if (!pare_add(&padded, bytes, BLOCK_ALIGN - 1 + REDZONE + (bytes == 0))) return NULL;
    padded -= padded % BLOCK_ALIGN;
    chunk *c = padded > LARGE_BYTES ? push_chunk(&a->large, padded) : a->small;
    if (padded <= LARGE_BYTES && (!c || c->size - c->used < padded)) {
        const size_t next = c && c->size < CHUNK_BYTES / 4 ? 4 * c->size : CHUNK_BYTES;
        c = push_chunk(&a->small, pare_max_size(c ? next : FIRST_BYTES, padded));
    }
    if (!c) return NULL;
    uint8_t *p = c->data + c->used;
    c->used += padded;
    ASAN_UNPOISON_MEMORY_REGION(p, bytes);
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
    return (pare_mark){.chunk = a->small,
                       .large = a->large,
                       .cleanup = a->cleanups,
                       .used = a->small ? a->small->used : 0};
}

void pare_arena_reset(pare_arena *a, pare_mark m)
{
    clean_up_to(a, m.cleanup);
    pop_chunks_to(&a->large, m.large);
    pop_chunks_to(&a->small, m.chunk);
    chunk *c = a->small;
    if (!c) return;
    PARE_ASSERT(m.used <= c->used);
    uint8_t *freed = c->data + m.used;
    const size_t bytes = c->used - m.used;
    ASAN_UNPOISON_MEMORY_REGION(freed, bytes);
    memset(freed, 0, bytes); /* pare_alloc promises zeros */
    ASAN_POISON_MEMORY_REGION(freed, bytes);
    c->used = m.used;
}
