/* An engine for `pare run --oracle M --backend pipe:./attention`, in plain C: put your accelerator
 * where attend() is. docs/pipe.md describes the frames.
 *
 *     cc -O2 -o attention attention.c -lm */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    uint32_t kind, nq, nk, dk, dv, flags;
    int64_t vis0;
} call;

/* y = softmax(q k^T) v; with `causal`, row i sees the keys 0 .. i. */
static void attend(const call *c, const float *q, const float *k, const float *v, float *y)
{
    double *w = malloc((c->nk + 1) * sizeof *w);
    for (uint32_t i = 0; i < c->nq; i++) {
        const uint32_t n = c->flags & 1 ? i + 1 : c->nk;
        double top = -INFINITY, sum = 0;
        for (uint32_t j = 0; j < n; j++) {
            w[j] = 0;
            for (uint32_t e = 0; e < c->dk; e++)
                w[j] += (double)q[i * c->dk + e] * k[j * c->dk + e];
            if (w[j] > top) top = w[j];
        }
        for (uint32_t j = 0; j < n; j++) sum += w[j] = exp(w[j] - top);
        for (uint32_t e = 0; e < c->dv; e++) {
            double s = 0;
            for (uint32_t j = 0; j < n; j++) s += w[j] * v[j * c->dv + e];
            y[i * c->dv + e] = (float)(s / sum);
        }
    }
    free(w);
}

/* ---- framing -----------------------------------------------------------------------------------
 */

static void get(void *to, size_t bytes)
{
    if (bytes && fread(to, 1, bytes, stdin) != bytes) exit(0); /* the end: pare is done */
}

static void put(const void *from, size_t bytes)
{
    if (bytes && fwrite(from, 1, bytes, stdout) != bytes) exit(1);
}

static void frame(uint32_t kind, uint64_t bytes)
{
    const uint32_t head[2] = {0x45524150, kind}; /* "PARE" */
    put(head, sizeof head);
    put(&bytes, sizeof bytes);
}

static void hello(void)
{
    uint32_t in[8];
    get(in, sizeof in);
    /* version, features (1 full, 2 causal, 16 q k v), M, dk and dv (0: any), batch, number bytes */
    const uint32_t caps[8] = {1, 1 | 2 | 16, in[1] ? in[1] : 512, 0, 0, 0, 4, 0};
    const double exps[3] = {104, 4, 0x1p-80}; /* exp_flush, exp_err, w_min of f32 */
    frame(2, sizeof caps + sizeof exps);
    put(caps, sizeof caps);
    put(exps, sizeof exps);
}

/* Reads all calls of a frame and writes all results. */
static void calls(void)
{
    uint32_t count[2];
    get(count, sizeof count);
    uint64_t bytes = sizeof count;
    call *c = calloc(count[0] + 1, sizeof *c);
    float **y = calloc(count[0] + 1, sizeof *y);
    for (uint32_t i = 0; i < count[0]; i++) {
        get(&c[i], sizeof *c);
        const size_t nq = (size_t)c[i].nq * c[i].dk, nk = (size_t)c[i].nk * c[i].dk;
        const size_t nv = (size_t)c[i].nk * c[i].dv, ny = (size_t)c[i].nq * c[i].dv;
        float *in = malloc((nq + nk + nv + 1) * sizeof *in);
        get(in, (nq + nk + nv) * sizeof *in);
        y[i] = malloc((ny + 1) * sizeof **y);
        attend(&c[i], in, in + nq, in + nq + nk, y[i]);
        bytes += 8 + ny * sizeof **y;
        free(in);
    }
    frame(4, bytes);
    put(count, sizeof count);
    for (uint32_t i = 0; i < count[0]; i++) {
        const uint32_t shape[2] = {c[i].nq, c[i].dv};
        put(shape, sizeof shape);
        put(y[i], (size_t)c[i].nq * c[i].dv * sizeof **y);
        free(y[i]);
    }
    free(c);
    free(y);
}

int main(void)
{
    for (;;) {
        uint32_t head[2];
        uint64_t bytes;
        get(head, sizeof head);
        get(&bytes, sizeof bytes);
        if (head[1] == 1)
            hello();
        else
            calls();
        fflush(stdout);
    }
}
