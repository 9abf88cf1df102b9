/* run.c - memory of a run, and its rows over the threads. */
#include "base/support.h"
#include "run.h"
#include "numbers.h"
#include <math.h>
#include <stdlib.h>

/* Bytes: of a cache line; of calls that a core keeps in its cache. */
enum { LINE = 64, CORE_CACHE = 576 << 10 };

struct aligned_block { /* one line; the memory follows it */
    _Alignas(LINE) struct aligned_block *below;
};

void *run_alloc_aligned(length_run *r, size_t count, size_t size)
{
    size_t bytes, all;
    if (!pare_mul(&bytes, count, size) || !pare_add(&all, bytes, 2 * LINE - 1)) return NULL;
    struct aligned_block *const block = aligned_alloc(LINE, all / LINE * LINE);
    if (!block) return NULL;
    block->below = r->aligned;
    r->aligned = block;
    return block + 1;
}

void run_free(length_run *r)
{
    while (r->aligned) {
        struct aligned_block *const last = r->aligned;
        r->aligned = last->below;
        free(last);
    }
    free(r->batch.entries);
    free(r->batch.calls);
    free(r->batch.tiles);
    free(r->batch.memory);
    pare_arena_free(r->arena);
}

size_t run_padded_bytes(const length_run *r, size_t count)
{
    const size_t bytes = count * num_size(r->in.caps.dtype);
    return (bytes + LINE - 1) / LINE * LINE;
}

/* As much as the caches of the threads hold: results are merged while they are still there. Small
 * calls go in larger batches, and an engine that wants many at once gets them. */
size_t run_batch_bytes(const length_run *r, size_t need)
{
    enum { SMALL = 8 << 10 };
    const size_t threads = r->in.exec ? (size_t)r->in.exec->threads : 1;
    if (r->in.opts.batch_bytes) return r->in.opts.batch_bytes;
    if (r->in.caps.batch || need < SMALL || threads > MAX_BATCH_BYTES / CORE_CACHE)
        return MAX_BATCH_BYTES;
    return threads * CORE_CACHE;
}

pare_status run_check_overflow(const length_run *r, size_t head)
{
    const double limit = r->in.caps.dtype == PARE_F32 ? 0x1p125 : 0x1p1021;
    if (!(r->stats->lmax >= limit)) return PARE_OK;
    return pare_fail(r->in.err, PARE_ERR_NUMERIC,
                     "length: logit overflow: queries and keys of head %zu may give %.3g", head,
                     r->stats->lmax);
}

void run_mark_unwritten(const length_run *r, char *y, size_t rows, size_t ld)
{
    if (r->round.fused || r->in.caps.features & PARE_ORC_WHOLE) return;
    for (size_t i = 0; i < rows; i++) num_put(r->in.caps.dtype, y, i * ld, NAN);
}

typedef struct row_loop {
    length_run *r;
    size_t stripes; /* of a head */
    void (*fn)(length_run *r, size_t head, size_t first, size_t end);
} row_loop;

static void one_stripe(void *ctx, size_t x)
{
    const row_loop *const s = ctx;
    const size_t first = x % s->stripes * STRIPE, n = s->r->in.n;
    s->fn(s->r, x / s->stripes, first, n - first < STRIPE ? n : first + STRIPE);
}

void run_for_rows(length_run *r, void (*fn)(length_run *r, size_t head, size_t first, size_t end))
{
    row_loop s = {r, (r->in.n + STRIPE - 1) / STRIPE, fn};
    pare_parallel(r->in.exec, s.stripes * r->in.nheads, one_stripe, &s);
}

double run_logit(const length_run *r, const pare_length_job *j, size_t i, size_t key)
{
    const pare_dtype type = r->in.caps.dtype;
    double s = 0;
    for (size_t c = 0; c < j->dk; c++)
        s += num_at(type, j->q, i * j->ldq + c) * num_at(type, j->k, key * j->ldk + c);
    return s;
}
