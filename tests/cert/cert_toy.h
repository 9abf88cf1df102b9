/* cert_toy.h - a small world for the tests of certificates: linear models y = x W^T + b in files, a
 * prover that "proves" by formulas over what it measures, and certificates made with both. */
#ifndef CERT_TOY_H
#define CERT_TOY_H
#include <pare/cert.h>
#include <pare_test.h>

#define TOY_WIDTH   3
#define TOY_OUTPUTS 2
#define TOY_NORM    "max"
#define TOY_DOMAIN  "the given inputs"

typedef struct toy {
    char dir[200];
    pare_arena *a;
    pare_err err;
} toy;

static inline const char *toy_path(toy *t, const char *name)
{
    const char *const p = pare_sprintf(t->a, "%s/%s", t->dir, name);
    assert_non_null(p);
    return p;
}

static inline pare_weight toy_weight(pare_arena *a, size_t rows, size_t cols, double first)
{
    float *const v = pare_alloc(a, rows * cols, sizeof *v);
    assert_non_null(v);
    for (size_t i = 0; i < rows * cols; i++) v[i] = (float)(first + 0.25 * (double)i);
    return (pare_weight){PARE_F32, rows, cols, v};
}

/* W_ij = 0.25 (i cols + j), b_i = shift + i / 4: two of them differ by the shift everywhere. */
static inline pare_model *toy_model(double shift, size_t outputs)
{
    pare_model *m = NULL;
    pare_err err;
    assert_ok(pare_model_new(&m, &err), &err);
    m->name = pare_strdup(m->arena, "toy");
    m->stem.width = TOY_WIDTH;
    m->top.out.w = toy_weight(m->arena, outputs, TOY_WIDTH, 0);
    m->top.out.b = toy_weight(m->arena, 1, outputs, shift);
    assert_ok(pare_model_check(m, &err), &err);
    return m;
}

static inline void toy_save(toy *t, const char *name, double shift)
{
    pare_model *const m = toy_model(shift, TOY_OUTPUTS);
    assert_ok(pare_model_save(m, toy_path(t, name), true, NULL, &t->err), &t->err);
    pare_model_free(m);
}

static inline void toy_begin(toy *t)
{
    *t = (toy){0};
    t->a = pare_arena_new();
    assert_non_null(t->a);
    test_mkdir(t->dir);
}

static inline void toy_end(toy *t)
{
    test_rmdir(t->dir);
    pare_arena_free(t->a);
}

/* ---- the prover --------------------------------------------------------------------------- */

static inline pare_status toy_prove(pare_cert *again, pare_arena *a, const pare_cert *claimed,
                                    const pare_model *f, const pare_model *g,
                                    const pare_inputs *set, const pare_exec *exec, pare_err *err)
{
    (void)claimed;
    const pare_status st = pare_measure(&again->measured, f, g, set, exec, err);
    if (st != PARE_OK) return st;
    again->norm = TOY_NORM;
    again->domain = TOY_DOMAIN;
    again->measured_slack = 1e-12;
    again->proven = again->measured * 1.5;
    again->apriori = again->measured * 16;
    again->rounding = 1e-6;
    again->nhypotheses = 3;
    again->hypotheses = pare_alloc(a, 3, sizeof *again->hypotheses);
    again->nstatements = 2;
    again->statements = pare_alloc(a, 2, sizeof *again->statements);
    again->npaper = 2;
    again->paper = pare_alloc(a, 2, sizeof *again->paper);
    if (!again->hypotheses || !again->statements || !again->paper) return pare_no_memory(err);
    again->hypotheses[0] = (pare_hypothesis){"small", PARE_TRUE, again->measured, 64};
    again->hypotheses[1] = (pare_hypothesis){"smaller", PARE_FALSE, -1.25, INFINITY};
    again->hypotheses[2] = (pare_hypothesis){"decidable", PARE_UNKNOWN, NAN, NAN};
    again->statements[0] =
        (pare_statement){"held out", "max", "one more input", 0.875, again->measured * 2};
    again->statements[1] = (pare_statement){"every input", "2", "all inputs", 1, INFINITY};
    again->paper[0] = (pare_named){"theorem 4", again->measured / 2};
    again->paper[1] = (pare_named){"theorem 5", INFINITY};
    return PARE_OK;
}

static const pare_prover toy_provers[] = {{"toy", toy_prove}, {"toy.twin", toy_prove}};

/* Inputs from a file: each byte is one input with all entries byte / 64. `split` plays no role, as
 * with the split of a graph. */
static inline pare_status toy_load(pare_inputs *out, pare_arena *a, const pare_model *m,
                                   const char *path, size_t split, pare_files *files, pare_err *err)
{
    (void)m, (void)split;
    char *text = NULL;
    size_t n = 0;
    pare_blob *b = NULL;
    pare_status st = pare_files_read(files, &b, path, err);
    if (st == PARE_OK) st = pare_text_read_blob(&text, &n, a, b, err);
    pare_blob_release(b);
    if (st != PARE_OK) return st;
    out->n = n;
    out->in = pare_alloc(a, n ? n : 1, sizeof *out->in);
    if (!out->in) return pare_no_memory(err);
    for (size_t i = 0; i < n; i++) {
        double *const x = pare_alloc(a, TOY_WIDTH, sizeof *x);
        if (!x) return pare_no_memory(err);
        for (size_t k = 0; k < TOY_WIDTH; k++) x[k] = (double)text[i] / 64;
        out->in[i] = (pare_input){.batch = 1, .tokens = 1, .width = TOY_WIDTH, .x = x};
    }
    return PARE_OK;
}

static inline pare_verify_opts toy_opts(void)
{
    return (pare_verify_opts){.provers = toy_provers, .nprovers = 2, .load = toy_load};
}

/* ---- certificates ------------------------------------------------------------------------- */

/* As a reduction would make it: of the files in -> out, on random inputs, or on those of `data`. */
static inline pare_cert toy_cert(toy *t, const char *cert, const char *in, const char *out,
                                 const char *data, uint64_t seed)
{
    pare_model *f = NULL, *g = NULL;
    pare_inputs set;
    pare_cert c = {.reduction = "toy", .seed = seed};
    pare_err *const err = &t->err;
    const char *const cert_path = toy_path(t, cert);
    pare_files *const files = pare_files_new();
    assert_non_null(files);
    assert_ok(pare_model_load(&f, toy_path(t, in), err), err);
    assert_ok(pare_model_load(&g, toy_path(t, out), err), err);
    assert_ok(pare_file_ref_make(&c.input, t->a, cert_path, toy_path(t, in), f, err), err);
    assert_ok(pare_file_ref_make(&c.output, t->a, cert_path, toy_path(t, out), g, err), err);
    if (data)
        assert_ok(toy_load(&set, t->a, f, toy_path(t, data), 1, files, err), err);
    else
        assert_ok(pare_inputs_random(&set, t->a, f, 4, 2, seed, err), err);
    assert_ok(pare_data_ref_make(&c.data, t->a, cert_path, data ? toy_path(t, data) : NULL, 1, 2,
                                 &set, err),
              err);
    assert_ok(toy_prove(&c, t->a, NULL, f, g, &set, NULL, err), err);
    pare_cert_inflate(&c);
    pare_files_free(files);
    pare_model_free(f);
    pare_model_free(g);
    return c;
}

static inline void toy_write(toy *t, const pare_cert *c, const char *name)
{
    assert_ok(pare_cert_write(c, toy_path(t, name), true, &t->err), &t->err);
}

static inline pare_status toy_verify(toy *t, const char *name)
{
    const pare_verify_opts opts = toy_opts();
    t->err = (pare_err){0};
    return pare_cert_verify(toy_path(t, name), &opts, &t->err);
}

/* ---- a certificate without any file, for what needs only the struct -------------------------- */

static inline void toy_hash(char hex[PARE_SHA256_HEX], char digit)
{
    memset(hex, digit, PARE_SHA256_HEX - 1);
    hex[PARE_SHA256_HEX - 1] = '\0';
}

/* Models are named by digits: toy_made(t, '1', '2') leads from model 1 to model 2. */
static inline pare_cert *toy_made(toy *t, char from, char to)
{
    pare_cert *const c = pare_alloc(t->a, 1, sizeof *c);
    assert_non_null(c);
    const pare_cert made = {.reduction = "toy",
                            .seed = UINT64_MAX,
                            .norm = TOY_NORM,
                            .domain = TOY_DOMAIN,
                            .apriori = INFINITY,
                            .proven = 0.1,
                            .measured = 1.0 / 3,
                            .rounding = 5e-324};
    *c = made;
    c->data = (pare_data_ref){.kind = "random", .count = 4, .tokens = 2};
    toy_hash(c->data.inputs_sha256, 'a');
    c->input.path = pare_sprintf(t->a, "%c.pare", from);
    c->output.path = pare_sprintf(t->a, "%c.pare", to);
    toy_hash(c->input.sha256, from);
    toy_hash(c->output.sha256, to);
    c->hypotheses = pare_alloc(t->a, 2, sizeof *c->hypotheses);
    c->statements = pare_alloc(t->a, 1, sizeof *c->statements);
    c->paper = pare_alloc(t->a, 1, sizeof *c->paper);
    c->output.tensors = pare_alloc(t->a, 2, sizeof *c->output.tensors);
    assert_true(c->hypotheses && c->statements && c->paper && c->output.tensors);
    c->nhypotheses = 2;
    c->hypotheses[0] = (pare_hypothesis){"small \"quoted\"", PARE_TRUE, 0.1, 0.2};
    c->hypotheses[1] = (pare_hypothesis){"open", PARE_UNKNOWN, NAN, NAN};
    c->nstatements = 1;
    c->statements[0] = (pare_statement){"held out", "max", "one more", 0.9, 0.7};
    c->npaper = 1;
    c->paper[0] = (pare_named){"theorem 4", 1e300};
    c->output.ntensors = 2;
    for (size_t i = 0; i < 2; i++) {
        c->output.tensors[i].name = i ? "top.out.bias" : "top.out.weight";
        toy_hash(c->output.tensors[i].sha256, i ? 'b' : 'c');
    }
    return c;
}

/* Whole text of a file in the folder. */
static inline char *toy_text(toy *t, const char *name)
{
    size_t n = 0;
    uint8_t *const bytes = test_read_file(toy_path(t, name), &n);
    char *const text = pare_strndup(t->a, (const char *)bytes, n);
    assert_non_null(text);
    free(bytes);
    return text;
}

/* The text with the first `from` in it replaced. */
static inline char *toy_replace(toy *t, const char *text, const char *from, const char *to)
{
    const char *const at = strstr(text, from);
    if (!at) fail_msg("the text has no %s", from);
    char *const out = pare_sprintf(t->a, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    assert_non_null(out);
    return out;
}
#endif
