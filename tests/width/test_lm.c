/* Tests src/width/lm*.c, lm_slice.c and lm_svd.c: cuts of models with norms, positions and ids. */
#include <pare_test.h>
#include "width/lm.h"
#include "linalg/matrix.h"
#include "model/model_facts.h"
#include <pare/width.h>

enum { SEED = 7 };

/* ---- models --------------------------------------------------------------------------------- */

static pare_status widen(void *self, const char *name, pare_weight *w, bool vector, pare_err *err)
{
    (void)name, (void)vector, (void)err;
    pare_model *const m = self;
    if (!pare_has(w)) return PARE_OK;
    double *const v = pare_alloc(m->arena, w->rows * w->cols, sizeof *v);
    assert_non_null(v);
    for (size_t i = 0; i < w->rows * w->cols; i++) v[i] = pare_weight_at(w, i);
    *w = (pare_weight){PARE_F64, w->rows, w->cols, v};
    return PARE_OK;
}

/* In f64, so that a cut rounds as little as the f64 pass. */
static pare_model *random_model(pare_random_kind kind)
{
    pare_err err = {0};
    pare_model *m = NULL;
    pare_random_model_opts o = PARE_RANDOM_MODEL_DEFAULT;
    o.kind = kind;
    o.dim = 16;
    o.vocab = 40;
    o.context = 24;
    o.seed = SEED;
    assert_ok(pare_random_model(&m, &o, &err), &err);
    assert_ok(pare_model_visit(m, widen, m, &err), &err);
    return m;
}

static pare_inputs inputs_for(pare_arena *a, const pare_model *m, size_t n)
{
    pare_err err = {0};
    pare_inputs set;
    assert_ok(pare_inputs_random(&set, a, m, n, 8, SEED, &err), &err);
    return set;
}

static double *outputs(pare_arena *a, const pare_model *m, const pare_input *in, size_t *n)
{
    pare_err err = {0};
    *n = pare_output_rows(m, in) * pare_model_outputs(m);
    double *const y = pare_alloc(a, *n, sizeof *y);
    assert_non_null(y);
    assert_ok(pare_forward_f64(y, m, in, NULL, NULL, &err), &err);
    return y;
}

/* Largest difference, relative to the largest output. */
static double apart(const pare_model *f, const pare_model *g)
{
    pare_arena *const a = pare_arena_new();
    assert_non_null(a);
    const pare_inputs set = inputs_for(a, f, 3);
    double most = 0, size = 0;
    for (size_t i = 0; i < set.n; i++) {
        size_t n, k;
        const double *const x = outputs(a, f, &set.in[i], &n);
        const double *const y = outputs(a, g, &set.in[i], &k);
        assert_int_equal(n, k);
        for (size_t e = 0; e < n; e++) {
            most = fmax(most, fabs(x[e] - y[e]));
            size = fmax(size, fabs(x[e]));
        }
    }
    pare_arena_free(a);
    return most / size;
}

static pare_model *cut(const pare_model *m, pare_width_opts o)
{
    pare_err err = {0};
    pare_width_report report;
    pare_model *out = NULL;
    pare_arena *const a = pare_arena_new();
    assert_non_null(a);
    const pare_inputs set = inputs_for(a, m, 8);
    o.trials = 1;
    assert_ok(pare_width(&out, &report, m, &set, &o, NULL, &err), &err);
    pare_arena_free(a);
    return out;
}

/* ---- exactness ------------------------------------------------------------------------------ */

static void full_width_changes_nothing(pare_random_kind kind, pare_width_opts o)
{
    pare_model *const m = random_model(kind);
    pare_model *const g = cut(m, o);
    const double off = apart(m, g);
    if (!(off <= 1e-9)) fail_msg("%s: off by %g", pare_random_kinds[kind], off);
    pare_model_free(g);
    pare_model_free(m);
}

static const pare_random_kind kinds[] = {PARE_RANDOM_GPT, PARE_RANDOM_LLAMA, PARE_RANDOM_BERT};

static void slicing_to_full_width_changes_nothing(void **state)
{
    (void)state;
    for (size_t k = 0; k < 3; k++) {
        pare_width_opts o = {.method = PARE_WIDTH_SLICE, .dim = 16, .max_move = INFINITY};
        full_width_changes_nothing(kinds[k], o);
        o.basis = PARE_BASIS_SHARED;
        full_width_changes_nothing(kinds[k], o);
        o.untie = true;
        full_width_changes_nothing(kinds[k], o);
    }
}

static void svd_of_full_size_changes_nothing(void **state)
{
    (void)state;
    for (size_t k = 0; k < 3; k++) {
        pare_width_opts o = {.method = PARE_WIDTH_SVD, .dim = 16, .max_move = INFINITY};
        full_width_changes_nothing(kinds[k], o);
        o = (pare_width_opts){.method = PARE_WIDTH_SVD, .qk_dim = 4, .max_move = INFINITY};
        full_width_changes_nothing(kinds[k], o);
    }
}

/* What nobody writes can be dropped: everything the stream is made of lies in few dimensions. */
static void project(pare_model *m, pare_weight *w, bool rows, const pare_mat *p)
{
    if (!pare_has(w)) return;
    double *const v = pare_alloc(m->arena, w->rows * w->cols, sizeof *v);
    assert_non_null(v);
    pare_mat out = pare_mat_of(v, w->rows, w->cols);
    const pare_mat in = pare_mat_of((double *)(uintptr_t)w->data, w->rows, w->cols);
    pare_gemm(&out, 1, rows ? &in : p, false, rows ? p : &in, false, 0);
    w->data = v;
}

static void low_rank(pare_model *m, size_t rank)
{
    const size_t d = pare_model_width(m, 0);
    pare_rng rng = pare_rng_at(SEED, 1);
    pare_err err = {0};
    pare_mat a = pare_mat_new(m->arena, d, rank), q = pare_mat_new(m->arena, d, rank);
    pare_mat r = pare_mat_new(m->arena, rank, rank), p = pare_mat_new(m->arena, d, d);
    for (size_t i = 0; i < d * rank; i++) a.v[i] = pare_rng_normal(&rng);
    assert_ok(pare_qr(&q, &r, &a, m->arena, &err), &err);
    pare_gemm(&p, 1, &q, false, &q, true, 0);
    project(m, &m->stem.embedding, true, &p);
    project(m, &m->stem.pos.table, true, &p);
    for (size_t b = 0; b < m->nblocks; b++) {
        pare_attn *const t = &m->blocks[b].attn;
        pare_ffn *const f = &m->blocks[b].ffn;
        project(m, &t->wo, false, &p);
        project(m, &t->bo, true, &p);
        project(m, &f->layers[f->nlayers - 1].w, false, &p);
        project(m, &f->layers[f->nlayers - 1].b, true, &p);
    }
}

static void a_stream_of_few_dimensions_is_cut_to_them_without_loss(void **state)
{
    (void)state;
    for (size_t k = 0; k < 2; k++) /* after-norm models write gains back into all dimensions */
        for (int basis = 0; basis < 2; basis++)
            for (int untie = 0; untie < 2; untie++) {
                pare_model *const m = random_model(kinds[k]);
                low_rank(m, 9);
                pare_model *const g =
                    cut(m, (pare_width_opts){.method = PARE_WIDTH_SLICE,
                                             .dim = 9,
                                             .basis = basis ? PARE_BASIS_SHARED : PARE_BASIS_PCA,
                                             .untie = untie,
                                             .max_move = INFINITY});
                assert_int_equal(pare_model_width(g, 1), 9);
                const double off = apart(m, g);
                if (!(off <= 1e-9)) fail_msg("kind %zu basis %d: off by %g", k, basis, off);
                assert_true(pare_model_size(g, 1, 1).parameters <
                            pare_model_size(m, 1, 1).parameters);
                pare_model_free(g);
                pare_model_free(m);
            }
}

static void clear_row(pare_model *m, pare_weight *w, size_t r)
{
    double *const v = pare_alloc(m->arena, w->rows * w->cols, sizeof *v);
    assert_non_null(v);
    memcpy(v, w->data, w->rows * w->cols * sizeof *v);
    memset(v + r * w->cols, 0, w->cols * sizeof *v);
    w->data = v;
}

/* Keys, values and units that are zero: svd must find them, in every head, plane and group. */
static void dead_dimensions_of_heads_and_units_go_without_loss(void **state)
{
    (void)state;
    for (size_t k = 0; k < 3; k++) {
        pare_model *const m = random_model(kinds[k]);
        const bool rotary = pare_model_is_rotary(m);
        for (size_t b = 0; b < m->nblocks; b++) {
            pare_attn *const a = &m->blocks[b].attn;
            pare_ffn *const f = &m->blocks[b].ffn;
            if (pare_has(&a->bk)) a->bk = (pare_weight){0};
            for (size_t h = 0; h < a->nheads; h++) {
                const pare_head *const at = &a->heads[h];
                const bool pairs = m->stem.pos.interleaved;
                clear_row(m, &a->wk, at->k + (rotary && !pairs ? 0 : 2));
                if (rotary) clear_row(m, &a->wk, at->k + (pairs ? 3 : at->planes));
                clear_row(m, &a->wv, at->v + 1);
            }
            if (pare_has(&a->bv)) a->bv = (pare_weight){0};
            clear_row(m, &f->layers[0].w, 5);
            if (pare_has(&f->layers[0].b)) f->layers[0].b = (pare_weight){0};
        }
        const size_t units = m->blocks[0].ffn.layers[0].w.rows;
        pare_model *const g = cut(m, (pare_width_opts){.method = PARE_WIDTH_SVD,
                                                       .qk_dim = rotary ? 2 : 3,
                                                       .v_dim = 3,
                                                       .ffn_dim = units - 1,
                                                       .max_move = INFINITY});
        /* Layer norms leave biases in the folded maps; here nothing is folded. */
        const double off = apart(m, g);
        if (!(off <= 1e-9)) fail_msg("kind %zu: off by %g", k, off);
        assert_int_equal(g->blocks[0].attn.heads[0].dk, rotary ? 2 : 3);
        assert_int_equal(g->blocks[1].attn.heads[1].dv, 3);
        assert_int_equal(g->blocks[1].ffn.layers[0].w.rows, units - 1);
        assert_int_equal(g->blocks[0].ffn.in_norm.kind, m->blocks[0].ffn.in_norm.kind);
        pare_model_free(g);
        pare_model_free(m);
    }
}

static void real_models_at_full_width_are_themselves(void **state)
{
    (void)state;
    static const char *const names[] = {"bert_sst_3layer", "gpt_nano_sort", "indhead_attn_only",
                                        "moonshine_tiny_encoder", "stories260K"};
    NEED_SHARED("../shared/data/models/stories260K.safetensors");
    for (size_t i = 0; i < 5; i++) {
        char path[120];
        pare_err err = {0};
        pare_model *m = NULL;
        snprintf(path, sizeof path, "../shared/data/models/%s.safetensors", names[i]);
        assert_ok(pare_model_load(&m, path, &err), &err);
        assert_ok(pare_model_visit(m, widen, m, &err), &err);
        pare_model *const g = cut(m, (pare_width_opts){.method = PARE_WIDTH_SLICE,
                                                       .dim = pare_model_width(m, 0),
                                                       .basis = PARE_BASIS_SHARED,
                                                       .max_move = INFINITY});
        const double off = apart(m, g);
        if (!(off <= 1e-9)) fail_msg("%s: off by %g", names[i], off);
        pare_model_free(g);
        pare_model_free(m);
    }
}

/* ---- sizes ---------------------------------------------------------------------------------- */

static void a_share_of_the_parameters_is_kept_and_nearly_used_up(void **state)
{
    (void)state;
    for (size_t k = 0; k < 3; k++)
        for (int method = 0; method < 4; method++) {
            pare_model *const m = random_model(kinds[k]);
            const double all = (double)pare_model_size(m, 1, 1).parameters;
            pare_model *const g =
                cut(m, (pare_width_opts){.method = method < 3 ? PARE_WIDTH_SLICE : PARE_WIDTH_SVD,
                                         .keep = 0.7,
                                         .basis = method == 1 ? PARE_BASIS_SHARED : PARE_BASIS_PCA,
                                         .untie = method == 2,
                                         .max_move = INFINITY});
            const double share = (double)pare_model_size(g, 1, 1).parameters / all;
            assert_le(share, 0.7);
            assert_le(0.7 - 2.0 / 16, share); /* one dimension of 16 is more than was left */
            pare_model_free(g);
            pare_model_free(m);
        }
}

/* ---- what is refused ------------------------------------------------------------------------ */

static void refused(pare_model *m, pare_width_opts o, bool data, pare_status want, const char *why)
{
    pare_err err = {0};
    pare_width_report r;
    pare_model *g = NULL;
    pare_arena *const a = pare_arena_new();
    const pare_inputs set = inputs_for(a, m, 2);
    o.max_move = INFINITY;
    assert_status(pare_width(&g, &r, m, data ? &set : NULL, &o, NULL, &err), want, &err);
    assert_null(g);
    assert_contains(err.msg, why);
    pare_arena_free(a);
}

static void what_can_not_be_cut_is_named(void **state)
{
    (void)state;
    pare_model *const m = random_model(PARE_RANDOM_GPT);
    const pare_width_opts slice = {.method = PARE_WIDTH_SLICE, .dim = 8};
    refused(m, slice, false, PARE_ERR_USAGE, "none is given");
    refused(m, (pare_width_opts){.method = PARE_WIDTH_SLICE}, true, PARE_ERR_USAGE, "needs dim");
    refused(m, (pare_width_opts){.method = PARE_WIDTH_SLICE, .dim = 17}, true, PARE_ERR_USAGE,
            "dim 17 is larger than the model's 16");
    refused(m, (pare_width_opts){.method = PARE_WIDTH_SVD, .v_dim = 5}, true, PARE_ERR_USAGE,
            "v-dim 5 is larger than the model's 4");
    refused(m, (pare_width_opts){.method = PARE_WIDTH_SLICE, .dim = 8, .qk_dim = 2}, true,
            PARE_ERR_USAGE, "only the residual stream");
    refused(m, (pare_width_opts){.method = PARE_WIDTH_SVD, .keep = 1e-4}, true, PARE_ERR_PROMISE,
            "even dimension 1 leaves more");
    refused(m, (pare_width_opts){.method = PARE_WIDTH_SVD, .keep = NAN, .dim = 2}, true,
            PARE_ERR_USAGE, "keep must be");
    m->blocks[1].attn.kind = PARE_ATTN_POLY;
    m->blocks[1].attn.tolerance = 1e-3;
    refused(m, slice, true, PARE_ERR_INPUT, "block 1, attention: attention of kind poly");
    m->blocks[1].attn.kind = PARE_ATTN_EXACT;
    m->top.norm = (pare_norm){0}; /* the head then reads what layer norms take away */
    refused(m, slice, true, PARE_ERR_INPUT, "head: it reads the mean");
    pare_model_free(m);
}

static void the_bits_do_not_depend_on_the_threads(void **state)
{
    (void)state;
    char hex[2][PARE_SHA256_HEX];
    for (int t = 0; t < 2; t++) {
        pare_err err = {0};
        pare_width_report r;
        pare_model *const m = random_model(PARE_RANDOM_LLAMA), *g = NULL;
        pare_arena *const a = pare_arena_new();
        const pare_inputs set = inputs_for(a, m, 8);
        const pare_exec exec = {.threads = 1 + 2 * t};
        const pare_width_opts o = {.method = PARE_WIDTH_SLICE, .dim = 9, .max_move = INFINITY};
        assert_ok(pare_width(&g, &r, m, &set, &o, &exec, &err), &err);
        assert_ok(pare_model_sha256(hex[t], g, &err), &err);
        assert_int_equal(r.dim, 9);
        pare_arena_free(a);
        pare_model_free(g);
        pare_model_free(m);
    }
    assert_string_equal(hex[0], hex[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slicing_to_full_width_changes_nothing),
        cmocka_unit_test(svd_of_full_size_changes_nothing),
        cmocka_unit_test(a_stream_of_few_dimensions_is_cut_to_them_without_loss),
        cmocka_unit_test(dead_dimensions_of_heads_and_units_go_without_loss),
        cmocka_unit_test(real_models_at_full_width_are_themselves),
        cmocka_unit_test(a_share_of_the_parameters_is_kept_and_nearly_used_up),
        cmocka_unit_test(what_can_not_be_cut_is_named),
        cmocka_unit_test(the_bits_do_not_depend_on_the_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
