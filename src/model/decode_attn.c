/* The decoder's attention: keys and values of what came before are kept, and what stands in the
 * place of attention keeps a running state. */
#include "decode.h"
#include <pare/elementary.h>
#include <math.h>
#include <string.h>

enum { LARGE_ATTENTION = 1 << 17 }; /* multiplications that are worth a second thread */

/* ---- positions ------------------------------------------------------------------------------- */

void decode_angles(pare_decoder *d, size_t n)
{
    for (size_t t = 0; t < d->turns; t++) {
        const pare_weight *const f = d->turn[t].freqs;
        for (size_t i = 0; i < n * f->cols; i++) {
            const double angle = (double)d->row[i / f->cols].pos * pare_weight_at(f, i % f->cols);
            double s, c;
            pare_sincos(angle, &s, &c);
            d->turn[t].cosine[i] = (float)c;
            d->turn[t].sine[i] = (float)s;
        }
    }
}

static void turn_head(float *x, const pare_head *h, const float *cosine, const float *sine,
                      bool interleaved)
{
    for (size_t f = 0; f < h->planes; f++) {
        const size_t one = interleaved ? 2 * f : f, two = interleaved ? 2 * f + 1 : f + h->planes;
        const float a = x[one], b = x[two];
        x[one] = a * cosine[h->freq + f] - b * sine[h->freq + f];
        x[two] = a * sine[h->freq + f] + b * cosine[h->freq + f];
    }
}

/* Has an earlier head turned these keys already? */
static bool seen(const pare_attn *a, size_t h)
{
    for (size_t e = 0; e < h; e++)
        if (a->heads[e].k == a->heads[h].k) return true;
    return false;
}

static void turn_rows(const pare_decoder *d, const decode_attn *a, float *h, size_t ld, size_t n)
{
    if (!pare_model_is_rotary(d->m) || !pare_has(&a->a->freqs)) return;
    const decode_turn *const t = &d->turn[a->turn];
    const bool pairs = d->m->stem.pos.interleaved;
    for (size_t e = 0; e < a->a->nheads; e++) {
        const pare_head *const head = &a->a->heads[e];
        const bool keys = !seen(a->a, e);
        for (size_t i = 0; i < n; i++) {
            const float *const c = t->cosine + i * t->freqs->cols;
            const float *const s = t->sine + i * t->freqs->cols;
            if (!a->query) turn_head(h + i * ld + a->q + head->q, head, c, s, pairs);
            if (keys) turn_head(h + i * ld + a->k + head->k, head, c, s, pairs);
        }
    }
}

/* ---- heads ----------------------------------------------------------------------------------- */

static void keep(float *cache, size_t step, size_t token, const float *row, size_t cols)
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

static void one_head(void *ctx, size_t unit)
{
    const head_job *const j = ctx;
    const decode_attn *const a = j->a;
    const pare_head *const head = &a->a->heads[unit];
    decode_query q = {.kstep = a->kstep,
                      .vstep = a->vstep,
                      .dk = head->dk,
                      .dv = head->dv,
                      .scale = (float)head->scale,
                      .s = j->d->scores + unit * j->d->score_room};
    for (size_t i = 0; i < j->n; i++) {
        const size_t text = j->d->row[i].text, pos = j->d->row[i].pos;
        const pare_keys keys = pare_visible(&j->d->m->pattern, NULL, pos + 1, pos);
        const bool window = j->d->m->pattern.kind == PARE_WINDOW;
        q.to0 = window ? keys.to[0] : 0;
        q.from1 = window ? keys.from[1] : 0;
        q.to1 = pos + 1;
        q.k = a->kcache + text * a->ktext + head->k * LANES;
        q.v = a->vcache + text * a->vtext + head->v * LANES;
        q.q = a->query ? a->query + head->q : j->h + i * j->ldh + a->q + head->q;
        q.y = j->y + i * j->ldy + head->o;
        j->d->go->attend(&q);
    }
}

static void all_heads(const pare_decoder *d, const decode_attn *a, const head_job *j)
{
    double pairs = 0;
    for (size_t i = 0; i < j->n; i++) pairs += (double)(d->row[i].pos + 1);
    const bool large = pairs * (double)(a->kstep + a->vstep) / LANES > LARGE_ATTENTION;
    if (large)
        pare_parallel(&d->exec, a->a->nheads, one_head, (void *)j);
    else
        for (size_t h = 0; h < a->a->nheads; h++) one_head((void *)j, h);
}

/* One query for all tokens: a key has the same score for all that follow, so that of those before
 * only the sum of their weights and of their weighed values is needed, both with respect to the
 * largest score so far. Per head: that score, the sum of weights, dv sums of values. */
static void gather_head(double *state, float *y, const pare_head *head, const float *q,
                        const float *k, const float *v)
{
    double *const top = &state[0], *const den = &state[1], *const num = &state[2];
    double s = 0;
    for (size_t c = 0; c < head->dk; c++) s += (double)q[c] * (double)k[c];
    s *= head->scale;
    if (*den == 0) *top = s; /* nothing was read yet */
    const double old = s > *top ? pare_exp(*top - s) : 1, w = s > *top ? 1 : pare_exp(s - *top);
    *top = fmax(*top, s);
    *den = *den * old + w;
    for (size_t c = 0; c < head->dv; c++) {
        num[c] = num[c] * old + w * (double)v[c];
        y[c] = (float)(num[c] / *den);
    }
}

static void gather_rows(const pare_decoder *d, const decode_attn *a, size_t ld, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float *const h = d->h + i * ld;
        for (size_t e = 0; e < a->a->nheads; e++) {
            const pare_head *const head = &a->a->heads[e];
            gather_head(a->gather + d->row[i].text * a->gtext + 2 * e + head->o,
                        d->g + i * decode_stride(a->heads) + head->o, head, a->query + head->q,
                        h + a->k + head->k, h + a->v + head->v);
        }
    }
}

/* d->g = the heads' results side by side. */
static void heads(pare_decoder *d, const decode_attn *a, size_t n)
{
    const size_t ld = a->first.out + LANES;
    pare_panels_apply(d->h, ld, &a->first, d->z, decode_stride(a->a->din), n, false, &d->exec);
    turn_rows(d, a, d->h, ld, n);
    if (a->gather) {
        gather_rows(d, a, ld, n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        const decode_row r = d->row[i];
        const float *const h = d->h + i * ld;
        keep(a->kcache + r.text * a->ktext, a->kstep, r.pos, h + a->k, a->a->wk.rows);
        keep(a->vcache + r.text * a->vtext, a->vstep, r.pos, h + a->v, a->a->wv.rows);
    }
    const head_job j = {d, a, d->h, d->g, ld, decode_stride(a->heads), n};
    all_heads(d, a, &j);
}

/* ---- replacements ---------------------------------------------------------------------------- */

static void mean_of_window(const pare_decoder *d, const decode_mean *m, double *sum,
                           const float *rows, size_t pos)
{
    const pare_keys keys = pare_visible(&d->m->pattern, NULL, pos + 1, pos);
    memset(sum, 0, m->d * sizeof *sum);
    for (size_t k = 0; k < keys.count; k++) {
        const float *const row = rows + pare_key(&keys, k) * m->d;
        for (size_t j = 0; j < m->d; j++) sum[j] += (double)row[j];
    }
    for (size_t j = 0; j < m->d; j++) sum[j] /= (double)keys.count;
}

void decode_mean_rows(const pare_decoder *d, decode_mean *m, float *y, const float *x, size_t ld,
                      size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const size_t text = d->row[i].text, pos = d->row[i].pos;
        const float *const from = x + i * ld;
        float *const to = y + i * ld;
        double *const sum = m->sum + text * m->d;
        if (m->rows) {
            float *const kept = m->rows + text * d->max * m->d;
            memcpy(kept + pos * m->d, from, m->d * sizeof *from);
            mean_of_window(d, m, sum, kept, pos);
            for (size_t j = 0; j < m->d; j++) to[j] = (float)sum[j];
        } else {
            for (size_t j = 0; j < m->d; j++) {
                sum[j] += (double)from[j];
                to[j] = (float)(sum[j] / (double)(pos + 1));
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
        if (a->row)
            memcpy(d->y + i * ld, a->row, bytes);
        else
            memset(d->y + i * ld, 0, bytes);
    }
}

static void uniform(pare_decoder *d, const decode_attn *a, size_t n)
{
    const size_t ld = decode_stride(a->a->dout);
    pare_panels_apply(d->h, ld, &a->first, d->z, decode_stride(a->a->din), n, false, &d->exec);
    decode_mean_rows(d, a->mean, d->g, d->h, ld, n);
    constant(d, a, n);
    for (size_t i = 0; i < n; i++)
        d->go->add(d->y + i * ld, d->g + i * ld, NULL, pare_padded(a->a->dout));
}

static void umix(pare_decoder *d, const decode_attn *a, size_t n)
{
    const size_t ld = decode_stride(a->a->dout), ldx = decode_stride(a->a->din);
    const float *x = d->z;
    constant(d, a, n);
    for (size_t j = 0; j < a->powers; j++) {
        float *const next = j % 2 ? d->g : d->h;
        if (j > 0) {
            decode_mean_rows(d, &a->mean[j - 1], next, x, ldx, n);
            x = next;
        }
        pare_panels_apply(d->y, ld, &a->power[j], x, ldx, n, true, &d->exec);
    }
}

void decode_attention(pare_decoder *d, decode_attn *a, size_t n)
{
    const size_t ld = decode_stride(a->a->dout), ldx = decode_stride(a->a->din);
    const bool direct = a->direct.out > 0;
    if (direct) pare_panels_apply(d->y, ld, &a->direct, d->z, ldx, n, false, &d->exec);
    switch (a->a->kind) {
    case PARE_ATTN_EXACT:
    case PARE_ATTN_POLY: /* exact is within any tolerance */
    case PARE_ATTN_CONSTQ:
    case PARE_ATTN_POOL:
        heads(d, a, n);
        pare_panels_apply(d->y, ld, &a->second, d->g, decode_stride(a->heads), n, direct, &d->exec);
        return;
    case PARE_ATTN_AFFMIX:
        decode_mean_rows(d, a->mean, d->g, d->z, ldx, n);
        pare_panels_apply(d->y, ld, &a->second, d->g, ldx, n, true, &d->exec);
        return;
    case PARE_ATTN_UNIFORM:
        uniform(d, a, n);
        return;
    case PARE_ATTN_UMIX:
        umix(d, a, n);
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
