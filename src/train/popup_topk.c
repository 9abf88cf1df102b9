/* popup_topk.c - radix selection of the K largest |scores|.
 *
 * |s| as 31 bits has the order of the numbers. Three digits of 11, 10 and 10 bits
 * are counted, most significant first, each among those that share what is known of the threshold
 * so far; then the threshold is known to the last bit, how many lie above it, and in every block
 * how many equal it. All of it is counting, so blocks may be done in any order.
 *
 * Cost: three passes over the scores, one over the weights. */
#include "popup_topk.h"

#include <string.h>

enum { DIGITS = 3, BINS = 1 << 11, BLOCK = 1 << 15 };
static const unsigned shift_of[DIGITS] = {20, 10, 0};

typedef struct block {
    size_t matrix, from, count; /* from: in the arrays */
    size_t near;                /* scores with the first digit of the threshold */
    size_t ties;                /* of those equal to the threshold, the first so many are kept */
    uint32_t bins[BINS];
} block;

typedef struct threshold {
    uint32_t bits;     /* as far as they are known */
    size_t left;       /* of keep, after all above the known bits are taken */
    size_t first, end; /* its blocks */
} threshold;

struct topk {
    const topk_matrix *m;
    size_t matrices, nblocks;
    block *blocks;
    threshold *at;
    /* of one call */
    unsigned digit;
    float *out;
    const float *weight, *score;
};

pare_status topk_new(topk **out, pare_arena *a, const topk_matrix *m, size_t matrices,
                     pare_err *err)
{
    topk *const s = *out = pare_alloc(a, 1, sizeof *s);
    if (!s) return pare_no_memory(err);
    *s = (topk){.m = m, .matrices = matrices};
    for (size_t i = 0; i < matrices; i++) s->nblocks += (m[i].count + BLOCK - 1) / BLOCK;
    s->blocks = pare_alloc(a, s->nblocks ? s->nblocks : 1, sizeof *s->blocks);
    s->at = pare_alloc(a, matrices ? matrices : 1, sizeof *s->at);
    if (!s->blocks || !s->at) return pare_no_memory(err);
    for (size_t i = 0, b = 0; i < matrices; i++) {
        PARE_ASSERT(m[i].keep >= 1 && m[i].keep <= m[i].count);
        s->at[i].first = b;
        for (size_t from = 0; from < m[i].count; from += BLOCK, b++) {
            const size_t left = m[i].count - from;
            s->blocks[b].matrix = i;
            s->blocks[b].from = m[i].offset + from;
            s->blocks[b].count = left < BLOCK ? left : BLOCK;
        }
        s->at[i].end = b;
    }
    return PARE_OK;
}

static uint32_t magnitude_bits(float x)
{
    uint32_t b;
    memcpy(&b, &x, sizeof b);
    return b & 0x7fffffff;
}

/* Two tables in turn: neighbors often fall into one bin, and a count that was just written is slow
 * to read. */
static void count_all(block *b, const float *x, unsigned shift)
{
    uint32_t other[BINS] = {0};
    size_t i = 0;
    for (; i + 2 <= b->count; i += 2) {
        b->bins[magnitude_bits(x[i]) >> shift]++;
        other[magnitude_bits(x[i + 1]) >> shift]++;
    }
    if (i < b->count) b->bins[magnitude_bits(x[i]) >> shift]++;
    for (size_t k = 0; k < BINS; k++) b->bins[k] += other[k];
}

/* Those that share the first digit with the threshold, side by side where the result will be: the
 * other digits look at them alone. Without a branch, which would be mispredicted half of the
 * time. */
static void gather_near(const topk *s, block *b)
{
    const float *const x = s->score + b->from;
    float *const to = s->out + b->from;
    const unsigned shift = shift_of[0];
    const uint32_t known = s->at[b->matrix].bits >> shift;
    const size_t count = b->count;
    size_t near = 0;
    for (size_t i = 0; i < count; i++) {
        const uint32_t v = magnitude_bits(x[i]);
        memcpy(&to[near], &v, sizeof v);
        near += v >> shift == known;
    }
    b->near = near;
}

static void count_block(void *ctx, size_t at)
{
    topk *const s = ctx;
    block *const b = &s->blocks[at];
    memset(b->bins, 0, sizeof b->bins);
    if (s->digit == 0) {
        count_all(b, s->score + b->from, shift_of[0]);
        return;
    }
    if (s->digit == 1) gather_near(s, b);
    const unsigned shift = shift_of[s->digit], before = shift_of[s->digit - 1];
    const uint32_t known = s->at[b->matrix].bits >> before, digit = (1u << (before - shift)) - 1;
    for (size_t i = 0; i < b->near; i++) {
        const uint32_t v = magnitude_bits(s->out[b->from + i]);
        if (v >> before == known) b->bins[v >> shift & digit]++;
    }
}

/* w or +0, without a branch that no processor could predict. */
static float masked(float w, bool keep)
{
    uint32_t b;
    memcpy(&b, &w, sizeof b);
    b &= 0u - (uint32_t)keep;
    memcpy(&w, &b, sizeof b);
    return w;
}

static void mask_block(void *ctx, size_t at)
{
    topk *const s = ctx;
    const block *const b = &s->blocks[at];
    const float *const x = s->score + b->from, *const w = s->weight + b->from;
    float *const out = s->out + b->from;
    const uint32_t least = s->at[b->matrix].bits;
    const size_t count = b->count;
    size_t ties = b->ties, i = 0;
    for (; i < count && ties > 0; i++) {
        const uint32_t v = magnitude_bits(x[i]);
        out[i] = masked(w[i], v >= least);
        ties -= v == least;
    }
    for (; i < count; i++) out[i] = masked(w[i], magnitude_bits(x[i]) > least);
}

void topk_apply(topk *s, float *out, const float *weight, const float *score, const pare_exec *exec)
{
    s->out = out, s->weight = weight, s->score = score;
    for (size_t i = 0; i < s->matrices; i++) {
        s->at[i].bits = 0;
        s->at[i].left = s->m[i].keep;
    }
    for (s->digit = 0; s->digit < DIGITS; s->digit++) {
        pare_parallel(exec, s->nblocks, count_block, s);
        for (size_t i = 0; i < s->matrices; i++) { /* the bin of the last one that is kept */
            threshold *const t = &s->at[i];
            size_t all[BINS] = {0}, bin = BINS - 1;
            for (size_t b = t->first; b < t->end; b++)
                for (size_t k = 0; k < BINS; k++) all[k] += s->blocks[b].bins[k];
            for (; bin > 0 && all[bin] < t->left; bin--) t->left -= all[bin];
            PARE_ASSERT(all[bin] >= t->left); /* keep <= count */
            t->bits |= (uint32_t)bin << shift_of[s->digit];
        }
    }
    /* After the last digit a block's bin holds those that equal the threshold. */
    const unsigned last = shift_of[DIGITS - 1], before = shift_of[DIGITS - 2];
    for (size_t i = 0; i < s->matrices; i++) {
        threshold *const t = &s->at[i];
        const uint32_t bin = (t->bits >> last) & ((1u << (before - last)) - 1);
        for (size_t b = t->first; b < t->end; b++) {
            const size_t equal = s->blocks[b].bins[bin];
            s->blocks[b].ties = equal < t->left ? equal : t->left;
            t->left -= s->blocks[b].ties;
        }
    }
    pare_parallel(exec, s->nblocks, mask_block, s);
}
