/* scratch_stack.c - working memory of a forward pass (scratch_stack.h). */
#include "base/support.h"
#include "scratch_stack.h"
#include <stdlib.h>

enum { LEAST_PART = 1 << 18 };

struct scratch_part {
    scratch_part *next;
    size_t size, used;
    uint8_t *data; /* in the same allocation, aligned */
};

void scratch_free(scratch *s)
{
    for (scratch_part *p = s->first, *next; p; p = next) {
        next = p->next;
        free(p);
    }
    *s = (scratch){0};
}

/* The part that follows `now` and holds `bytes`; one that is too small stays behind a new one. */
static scratch_part *next_part(scratch *s, size_t bytes)
{
    scratch_part **const link = s->now ? &s->now->next : &s->first;
    if (!*link || (*link)->size < bytes) {
        const size_t size = bytes > LEAST_PART ? bytes : LEAST_PART;
        size_t all;
        if (!pare_add(&all, size, sizeof(scratch_part) + SCRATCH_ALIGNMENT)) return NULL;
        scratch_part *const p = malloc(all);
        if (!p) return NULL;
        const size_t beyond = (uintptr_t)(p + 1) % SCRATCH_ALIGNMENT;
        uint8_t *const data = (uint8_t *)(p + 1) + (SCRATCH_ALIGNMENT - beyond) % SCRATCH_ALIGNMENT;
        *p = (scratch_part){*link, size, 0, data};
        *link = p;
    }
    (*link)->used = 0;
    return *link;
}

void *scratch_get(scratch *s, size_t count, size_t size)
{
    size_t bytes;
    if (!pare_mul(&bytes, count, size) || !pare_add(&bytes, bytes, SCRATCH_ALIGNMENT - 1))
        return NULL;
    bytes -= bytes % SCRATCH_ALIGNMENT;
    if (!s->now || s->now->size - s->now->used < bytes) {
        scratch_part *const p = next_part(s, bytes);
        if (!p) return NULL;
        s->now = p;
    }
    void *const out = s->now->data + s->now->used;
    s->now->used += bytes;
    return out;
}

bool scratch_reserve(scratch *s, size_t bytes)
{
    if (s->now && s->now->size - s->now->used >= bytes) return true;
    scratch_part *const p = next_part(s, bytes);
    if (p) s->now = p;
    return p;
}

scratch_mark scratch_save(const scratch *s)
{
    return (scratch_mark){s->now, s->now ? s->now->used : 0};
}

void scratch_reset(scratch *s, scratch_mark m)
{
    s->now = m.now;
    if (m.now) m.now->used = m.used;
}
