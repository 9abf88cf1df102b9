/* 03_build_model.c - build a model weight by weight: one causal attention block with a single
 * head. All scores are zero, so every visible token has the same attention weight, and row i of
 * the output is the mean of the first i + 1 input vectors. */
#define _POSIX_C_SOURCE 200809L /* mkdtemp */
#include <pare/pare.h>

#include <stdlib.h>
#include <unistd.h>

static const float one[4] = {1, 0, 0, 1};            /* the identity, 2 x 2 */
static const float nothing[2] = {0, 0};              /* 1 x 2: every score is zero */
static const double x[8] = {4, 0, 0, 2, 2, 4, 2, 2}; /* 4 tokens of width 2 */

static pare_status build(pare_model **out, pare_err *err)
{
    pare_status st = pare_model_new(out, err);
    if (st) return st;
    pare_model *m = *out;
    m->name = pare_strdup(m->arena, "running mean");
    m->blocks = pare_alloc(m->arena, 1, sizeof *m->blocks);
    pare_head *head = pare_alloc(m->arena, 1, sizeof *head);
    if (!m->name || !m->blocks || !head) return pare_no_memory(err);
    *head = (pare_head){.dk = 1, .dv = 2, .scale = 1};
    m->nblocks = 1;
    m->embedding.width = 2; /* inputs are vectors: there is no embedding */
    m->pattern.kind = PARE_CAUSAL;
    m->blocks[0].attn = (pare_attn){
        .kind = PARE_ATTN_EXACT,
        .din = 2,
        .dout = 2,
        .nheads = 1,
        .heads = head,
        .wq = {PARE_F32, 1, 2, nothing},
        .wk = {PARE_F32, 1, 2, nothing},
        .wv = {PARE_F32, 2, 2, one},
        .wo = {PARE_F32, 2, 2, one},
    };
    return pare_model_check(m, err);
}

int main(void)
{
    char folder[] = "/tmp/pare-example-XXXXXX", path[64], hash[PARE_SHA256_HEX];
    const pare_input in = {.batch = 1, .tokens = 4, .width = 2, .x = x};
    pare_err err = {0};
    pare_model *m = NULL;
    double y[8];
    if (!mkdtemp(folder)) return 2;
    snprintf(path, sizeof path, "%s/mean.safetensors", folder);
    pare_status st = build(&m, &err);
    if (!st) st = pare_forward_f64(y, m, &in, NULL, NULL, &err);
    if (!st) st = pare_model_save(m, path, false, hash, &err);
    for (size_t i = 0; i < 4 && !st; i++) printf("%g %g\n", y[2 * i], y[2 * i + 1]);
    if (!st) printf("saved; its SHA-256 has %zu digits\n", sizeof hash - 1);
    if (st) fprintf(stderr, "%s\n", err.msg);
    pare_model_free(m);
    unlink(path);
    rmdir(folder);
    return pare_exit_code(st);
}
