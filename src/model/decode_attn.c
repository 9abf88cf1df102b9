/* decode_attn.c - the attention of the decoder.
 *
 * Keys and values of the tokens before are cached; what stands in the place of attention has a
 * running state: a softmax (one query for all tokens) or sums (means over the tokens before). */
#include "decode.h"
#include "rotary.h"
#include "linalg/elementary.h"
#include "linalg/matrix.h"
#include "model_facts.h"
#include <pare/run.h>
#include <math.h>
#include <string.h>

enum { LARGE_ATTENTION = 1 << 17 }; /* multiplications that are worth a second thread */

/* ---- positions ------------------------------------------------------------------------------- */

void decode_set_angles(pare_decoder *d, size_t n)
{
    for (size_t t = 0; t < d->rotations; t++) {
        const pare_weight *const f = d->rotation[t].freqs;
        for (size_t i = 0; i < n * f->cols; i++) {
            const double angle =
                (double)d->row[i / f->cols].position * pare_weight_at(f, i % f->cols);
            double s, c;
            pare_sincos(angle, &s, &c);
            d->rotation[t].cosine[i] = (float)c;
            d->rotation[t].sine[i] = (float)s;
        }
    }
}

static void rotate_rows(const pare_decoder *d, const decode_attn *a, float *h, size_t ld, size_t n)
{
    if (!pare_model_is_rotary(d->m) || !pare_has(&a->a->freqs)) return;
    const decode_rotation *const t = &d->rotation[a->rotation];
    const bool pairs = d->m->embedding.pos.interleaved;
    for (size_t e = 0; e < a->a->nheads; e++) {
        const pare_head *const head = &a->a->heads[e];
        const bool keys = !rotary_keys_done(a->a, e);
        for (size_t i = 0; i < n; i++) {
            const float *const c = t->cosine + i * t->freqs->cols + head->freq;
            const float *const s = t->sine + i * t->freqs->cols + head->freq;
            float *const row = h + i * ld;
            if (!a->query) rotary_head(row + a->q + head->q, c, s, head->planes, pairs);
            if (keys) rotary_head(row + a->k + head->k, c, s, head->planes, pairs);
        }
    }
}

/* ---- heads ----------------------------------------------------------------------------------- */

static void store(float *cache, size_t step, size_t token, const float *row, size_t cols)
{
    float *const to = cache + token / LANES * step + token % LANES;
    for (size_t c = 0; c < cols; c++) to[c * LANES] = row[c];
}

typedef struct head_job {
    const pare_decoder *d;
    const decode_attn *a;
    const float *h; /* queries */
    float *y;       /* the heads' results */
    size_t ldh, ldy, n;
} head_job;

static void attend_head(void *ctx, size_t unit)
{
    const head_job *const j = ctx;
    const decode_attn *const a = j->a;
    const pare_head *const head = &a->a->heads[unit];
    decode_query q = {.kstep = a->kstep,
                      .vstep = a->vstep,
                      .dk = head->dk,
                      .dv = head->dv,
                      .scale = (float)head->scale,
                      .s = j->d->scores + unit * j->d->score_capacity};
    for (size_t i = 0; i < j->n; i++) {
        const size_t sequence = j->d->row[i].sequence, position = j->d->row[i].position;
        const pare_keys keys = pare_visible(&j->d->m->pattern, NULL, position + 1, position);
        const bool window = j->d->m->pattern.kind == PARE_WINDOW;
        q.to0 = window ? keys.to[0] : 0;
        q.from1 = window ? keys.from[1] : 0;
        q.to1 = position + 1;
        q.k = a->kcache + sequence * a->k_sequence + head->k * LANES;
        q.v = a->vcache + sequence * a->v_sequence + head->v * LANES;
        q.q = a->query ? a->query + head->q : j->h + i * j->ldh + a->q + head->q;
        q.y = j->y + i * j->ldy + head->o;
        j->d->kernels->attend(&q);
    }
}

/* One query for all tokens: a key has the same score s for all tokens that follow, so the state of
 * a head is a running softmax over the keys so far,
 *
 *     m = max_j s_j,   l = sum_j exp(s_j - m),   acc = sum_j exp(s_j - m) v_j   (dv numbers),
 *
 * and the output is acc / l. */
static void update_running(double *state, float *y, const pare_head *head, const float *q,
                           const float *k, const float *v)
{
    double *const m = &state[0], *const l = &state[1], *const acc = &state[2];
    double s = 0;
    for (size_t c = 0; c < head->dk; c++) s += (double)q[c] * (double)k[c];
    s *= head->scale;
    if (*l == 0) *m = s; /* the first token */
    const double old = s > *m ? pare_exp(*m - s) : 1, w = s > *m ? 1 : pare_exp(s - *m);
    *m = fmax(*m, s);
    *l = *l * old + w;
    for (size_t c = 0; c < head->dv; c++) {
        acc[c] = acc[c] * old + w * (double)v[c];
        y[c] = (float)(acc[c] / *l);
    }
}

/* d->g = the heads' results side by side. */
static void heads(pare_decoder *d, const decode_attn *a, size_t n)
{
    const size_t ld = a->project.out + LANES, ldy = decode_stride(a->head_columns);
    const size_t nheads = a->a->nheads;
    decode_product(d, d->h, ld, &a->project, d->z, decode_stride(a->a->din), n, false);
    rotate_rows(d, a, d->h, ld, n);
    if (a->running) {
        for (size_t i = 0; i < n; i++) {
            const float *const h = d->h + i * ld;
            double *const state = a->running + d->row[i].sequence * a->running_size;
            for (size_t e = 0; e < nheads; e++) {
                const pare_head *const head = &a->a->heads[e];
                update_running(state + 2 * e + head->o, d->g + i * ldy + head->o, head,
                               a->query + head->q, h + a->k + head->k, h + a->v + head->v);
            }
        }
        return;
    }
    double pairs = 0;
    for (size_t i = 0; i < n; i++) {
        const decode_row r = d->row[i];
        const float *const h = d->h + i * ld;
        store(a->kcache + r.sequence * a->k_sequence, a->kstep, r.position, h + a->k,
              a->a->wk.rows);
        store(a->vcache + r.sequence * a->v_sequence, a->vstep, r.position, h + a->v,
              a->a->wv.rows);
        pairs += (double)(r.position + 1);
    }
    const head_job j = {d, a, d->h, d->g, ld, ldy, n};
    if (pairs * (double)(a->kstep + a->vstep) / LANES > LARGE_ATTENTION)
        pare_parallel(&d->exec, nheads, attend_head, (void *)&j);
    else
        for (size_t h = 0; h < nheads; h++) attend_head((void *)&j, h);
}

/* ---- replacements ---------------------------------------------------------------------------- */

/* y = U x, the mean of the rows that each row sees. */
static void mean_rows(const pare_decoder *d, decode_mean *m, float *y, const float *x, size_t ld,
                      size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const size_t sequence = d->row[i].sequence, position = d->row[i].position;
        const float *const from = x + i * ld;
        float *const to = y + i * ld;
        double *const sum = m->sum + sequence * m->d;
        if (m->rows) {
            float *const seen = m->rows + sequence * d->max_tokens * m->d;
            const pare_keys keys = pare_visible(&d->m->pattern, NULL, position + 1, position);
            memcpy(seen + position * m->d, from, m->d * sizeof *from);
            memset(sum, 0, m->d * sizeof *sum);
            for (size_t k = 0; k < keys.count; k++) {
                const float *const row = seen + pare_key(&keys, k) * m->d;
                for (size_t j = 0; j < m->d; j++) sum[j] += (double)row[j];
            }
            for (size_t j = 0; j < m->d; j++) {
                sum[j] /= (double)keys.count;
                to[j] = (float)sum[j];
            }
        } else {
            for (size_t j = 0; j < m->d; j++) {
                sum[j] += (double)from[j];
                to[j] = (float)(sum[j] / (double)(position + 1));
            }
        }
        for (size_t j = m->d; j < pare_padded(m->d); j++) to[j] = 0;
    }
}

/* y = bo on every row, or 0. */
static void constant(pare_decoder *d, const decode_attn *a, size_t n)
{
    const size_t ld = decode_stride(a->a->dout), bytes = pare_padded(a->a->dout) * sizeof *d->y;
    for (size_t i = 0; i < n; i++) {
        if (a->bias)
            memcpy(d->y + i * ld, a->bias, bytes);
        else
            memset(d->y + i * ld, 0, bytes);
    }
}

void decode_attention(pare_decoder *d, decode_attn *a, size_t n)
{
    const size_t ld = decode_stride(a->a->dout), ldx = decode_stride(a->a->din);
    const bool direct = a->direct.out > 0;
    const float *x = d->z;
    if (direct) decode_product(d, d->y, ld, &a->direct, d->z, ldx, n, false);
    switch (a->a->kind) {
    case PARE_ATTN_EXACT:
    case PARE_ATTN_POLY: /* exact is within any tolerance */
    case PARE_ATTN_CONSTQ:
    case PARE_ATTN_POOL:
        heads(d, a, n);
        decode_product(d, d->y, ld, &a->output, d->g, decode_stride(a->head_columns), n, direct);
        return;
    case PARE_ATTN_AFFMIX:
        mean_rows(d, a->mean, d->g, d->z, ldx, n);
        decode_product(d, d->y, ld, &a->output, d->g, ldx, n, true);
        return;
    case PARE_ATTN_UNIFORM:
        decode_product(d, d->h, ld, &a->project, d->z, ldx, n, false);
        mean_rows(d, a->mean, d->g, d->h, ld, n);
        constant(d, a, n);
        for (size_t i = 0; i < n; i++)
            d->kernels->add(d->y + i * ld, d->g + i * ld, NULL, pare_padded(a->a->dout));
        return;
    case PARE_ATTN_UMIX:
        constant(d, a, n);
        for (size_t j = 0; j < a->powers; j++) {
            float *const next = j % 2 ? d->g : d->h;
            if (j > 0) mean_rows(d, &a->mean[j - 1], next, x, ldx, n);
            if (j > 0) x = next;
            decode_product(d, d->y, ld, &a->power[j], x, ldx, n, true);
        }
        return;
    case PARE_ATTN_ZERO:
    case PARE_ATTN_CONST:
        constant(d, a, n);
        return;
    case PARE_ATTN_LINEAR: /* done: direct */
    case PARE_ATTN_NONE:
    case PARE_ATTN_MEANQ: /* refused */
        return;
    }
}
