/* A stack of memory that is kept from pass to pass. */
#include "tape.h"
#include <stdlib.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif

enum { ALIGNMENT = 64, LEAST_PART = 1 << 18, LARGE_PAGE = 2 << 20 };

/* Rows that a list names lie anywhere: with large pages their addresses are found at once. Only a
 * wish: nothing depends on it. */
static void wish_large_pages(void *data, size_t size)
{
#if defined(MADV_HUGEPAGE)
    (void)madvise(data, size / LARGE_PAGE * LARGE_PAGE, MADV_HUGEPAGE);
#else
    (void)data, (void)size;
#endif
}

struct store_part {
    store_part *before;
    size_t size, used;
    uint8_t *data; /* in the same allocation, aligned */
};

static bool push_part(store *s, size_t bytes)
{
    size_t size = bytes > s->most ? bytes : s->most, all;
    if (size < LEAST_PART) size = LEAST_PART;
    const size_t grain = size < 2 * LARGE_PAGE ? ALIGNMENT : LARGE_PAGE;
    if (!pare_add(&all, size, sizeof(store_part) + grain)) return false;
    store_part *const p = malloc(all);
    if (!p) return false;
    uint8_t *const end = (uint8_t *)(p + 1);
    *p = (store_part){s->last, size, 0, end + (grain - (uintptr_t)end % grain) % grain};
    if (grain == LARGE_PAGE) wish_large_pages(p->data, size);
    if (s->last) s->below += s->last->used;
    s->last = p;
    return true;
}

static void pop_part(store *s)
{
    store_part *const p = s->last;
    s->last = p->before;
    if (s->last) s->below -= s->last->used;
    free(p);
}

void *store_get(store *s, size_t count, size_t size)
{
    size_t bytes;
    if (!pare_mul(&bytes, count, size) || !pare_add(&bytes, bytes, ALIGNMENT - 1)) return NULL;
    bytes -= bytes % ALIGNMENT;
    if ((!s->last || s->last->size - s->last->used < bytes) && !push_part(s, bytes)) return NULL;
    void *const out = s->last->data + s->last->used;
    s->last->used += bytes;
    if (s->below + s->last->used > s->most) s->most = s->below + s->last->used;
    return out;
}

store_mark store_top(const store *s)
{
    return (store_mark){s->last, s->last ? s->last->used : 0};
}

/* One part that is large enough stays; several make room for one that holds all. */
void store_reset(store *s, store_mark m)
{
    if (!m.part && s->last && !s->last->before && s->last->size >= s->most) {
        s->last->used = 0;
        return;
    }
    while (s->last != m.part) pop_part(s);
    if (s->last) s->last->used = m.used;
}

void store_free(store *s)
{
    while (s->last) pop_part(s);
    s->most = 0;
}
