/* tape_stack.c - a stack of memory that is kept from pass to pass. */
#include "base/support.h"
#include "tape.h"
#include <stdlib.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif

enum { ALIGNMENT = 64, MIN_BLOCK = 1 << 18, LARGE_PAGE = 2 << 20 };

/* Sparse attention reads rows anywhere in memory: large pages save it TLB misses. Only a request:
 * nothing depends on it. */
static void request_large_pages(void *data, size_t size)
{
#if defined(MADV_HUGEPAGE)
    (void)madvise(data, size / LARGE_PAGE * LARGE_PAGE, MADV_HUGEPAGE);
#else
    (void)data, (void)size;
#endif
}

struct stack_block {
    stack_block *before;
    size_t size, used;
    uint8_t *data; /* in the same allocation, aligned */
};

static bool push_block(memory_stack *s, size_t bytes)
{
    size_t size = bytes > s->most ? bytes : s->most, all;
    if (size < MIN_BLOCK) size = MIN_BLOCK;
    const size_t grain = size < 2 * LARGE_PAGE ? ALIGNMENT : LARGE_PAGE;
    if (!pare_add(&all, size, sizeof(stack_block) + grain)) return false;
    stack_block *const p = malloc(all);
    if (!p) return false;
    uint8_t *const end = (uint8_t *)(p + 1);
    *p = (stack_block){s->last, size, 0, end + (grain - (uintptr_t)end % grain) % grain};
    if (grain == LARGE_PAGE) request_large_pages(p->data, size);
    if (s->last) s->below += s->last->used;
    s->last = p;
    return true;
}

static void pop_block(memory_stack *s)
{
    stack_block *const p = s->last;
    s->last = p->before;
    if (s->last) s->below -= s->last->used;
    free(p);
}

void *stack_alloc(memory_stack *s, size_t count, size_t size)
{
    size_t bytes;
    if (!pare_mul(&bytes, count, size) || !pare_add(&bytes, bytes, ALIGNMENT - 1)) return NULL;
    bytes -= bytes % ALIGNMENT;
    if ((!s->last || s->last->size - s->last->used < bytes) && !push_block(s, bytes)) return NULL;
    void *const out = s->last->data + s->last->used;
    s->last->used += bytes;
    if (s->below + s->last->used > s->most) s->most = s->below + s->last->used;
    return out;
}

stack_mark stack_top(const memory_stack *s)
{
    return (stack_mark){s->last, s->last ? s->last->used : 0};
}

/* A single block that is large enough stays; several give way to one that holds everything. */
void stack_reset(memory_stack *s, stack_mark m)
{
    if (!m.block && s->last && !s->last->before && s->last->size >= s->most) {
        s->last->used = 0;
        return;
    }
    while (s->last != m.block) pop_block(s);
    if (s->last) s->last->used = m.used;
}

void stack_free(memory_stack *s)
{
    while (s->last) pop_block(s);
    s->most = 0;
}
