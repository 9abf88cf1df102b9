/* cert_toy.h - a small world for the tests of certificates: linear models y = x W^T + b in files, a
 * prover that "proves" by formulas over what it measures, and certificates made with both. */
#ifndef CERT_TOY_H
#define CERT_TOY_H
#include <prove_each.h>
#include "base/support.h"
#include "cert/conformal.h"
#include "cert/prove.h"
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
    m->embedding.width = TOY_WIDTH;
    m->head.out.w = toy_weight(m->arena, outputs, TOY_WIDTH, 0);
    m->head.out.b = toy_weight(m->arena, 1, outputs, shift);
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

/* One claim of every section: with a value, without, infinite, from below, with a ceiling. */
static inline pare_status toy_prove(pare_cert *again, pare_arena *a, const pare_cert *claimed,
                                    const pare_model *f, const pare_model *g,
                                    const pare_inputs *set, const pare_exec *exec, pare_err *err)
{
    (void)claimed;
    pare_status st = pare_measure(&again->measured, f, g, set, exec, err);
    if (st != PARE_OK) return st;
    const double m = again->measured;
    again->norm = TOY_NORM;
    again->domain = pare_domain_text(a, &again->data);
    if (!again->domain) return pare_no_memory(err);
    again->measured_radius = again->f64_radius = 1e-12;
    again->proven = m * 1.5;
    const pare_claim claims[] = {
        {.kind = PARE_TICKET_LATTICE, .holds = PARE_TRUE, .value = m, .limit = 64},
        {.kind = PARE_CLUSTER_SEPARATION,
         .p = {1},
         .holds = PARE_FALSE,
         .value = -1.25,
         .limit = INFINITY},
        {.kind = PARE_APRIORI_APPLIES, .text = "a reason", .holds = PARE_UNKNOWN},
        {.kind = PARE_APRIORI_OUTPUTS, .value = m * 16, .domain = "all inputs"},
        {.kind = PARE_ONE_LAYER_LEAST, .value = m / 4, .domain = "all inputs"},
        {.kind = PARE_ROWS_CHANGED, .value = 0.25},
        {.kind = PARE_BALL_OUTPUTS, .p = {0.1}, .text = "in every entry", .value = INFINITY},
        {.kind = PARE_ENGINE_DISTANCE, .value = 1e-6},
        {.kind = PARE_RELATIVE_ERROR, .value = m / 8},
        {.kind = PARE_STREAM_OPTIMALITY, .p = {2}, .text = "h1", .value = m, .limit = m / 2},
        {.kind = PARE_PAPER_PLAIN, .value = m / 2},
        {.kind = PARE_PAPER_TICKET, .value = INFINITY},
    };
    for (size_t i = 0; st == PARE_OK && i < sizeof claims / sizeof *claims; i++)
        if (again->evidence || pare_kinds[claims[i].kind].section != PARE_EVIDENCE)
            st = pare_cert_add(again, a, claims[i], err);
    return st ? st : add_new_inputs(again, a, &again->data, f, g, set, err);
}

/* The same figures under a name of its own, and one hypothesis more. */
static inline pare_status twin_prove(pare_cert *again, pare_arena *a, const pare_cert *claimed,
                                     const pare_model *f, const pare_model *g,
                                     const pare_inputs *set, const pare_exec *exec, pare_err *err)
{
    const pare_status st = toy_prove(again, a, claimed, f, g, set, exec, err);
    const pare_claim more = {.kind = PARE_FOLD_NOT_ROTARY, .holds = PARE_TRUE};
    return st ? st : pare_cert_add(again, a, more, err);
}

static const pare_prover toy_provers[] = {{"toy", toy_prove}, {"toy.twin", twin_prove}};

/* Inputs from a file: each byte is one input with all entries byte / 64. `o` plays no role. */
static inline pare_status toy_load(pare_inputs *out, pare_arena *a, const pare_model *m,
                                   const char *path, const pare_data_opts *o, pare_files *files,
                                   pare_err *err)
{
    (void)m, (void)o;
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
    return (pare_verify_opts){
        .provers = toy_provers, .nprovers = 2, .load = toy_load, .evidence = true};
}

/* ---- certificates ------------------------------------------------------------------------- */

/* A model of the folder, and what a certificate says of it. */
static inline pare_model *toy_open(toy *t, pare_file_ref *ref, const char *cert, const char *name)
{
    pare_model *m = NULL;
    pare_files *const files = pare_files_new();
    assert_non_null(files);
    assert_ok(pare_model_load_as(&m, toy_path(t, name), NULL, files, &t->err), &t->err);
    assert_ok(
        pare_file_ref_make(ref, t->a, toy_path(t, cert), toy_path(t, name), files, m, &t->err),
        &t->err);
    pare_files_free(files);
    return m;
}

/* The inputs of a file are held out; the cut was fitted to two others. */
static inline void toy_held_out(toy *t, pare_data_ref *d, const pare_inputs *set)
{
    static const double x[2 * TOY_WIDTH] = {1, 2, 3, 4, 5, 6};
    pare_input in = {.batch = 2, .tokens = 1, .width = TOY_WIDTH, .x = x};
    const pare_inputs fitted = {1, &in};
    assert_ok(pare_input_hashes_make(&d->fitted, t->a, &fitted, 0, &t->err), &t->err);
    assert_ok(pare_input_hashes_make(&d->heldout, t->a, set, 0, &t->err), &t->err);
    d->candidates = 1;
}

/* As a reduction would make it: of the files in -> out, on random inputs, or on those of `data`. */
static inline pare_cert toy_cert(toy *t, const char *cert, const char *in, const char *out,
                                 const char *data, uint64_t seed)
{
    pare_inputs set;
    char hex[PARE_SHA256_HEX] = "";
    pare_cert c = {.reduction = "toy", .seed = seed, .evidence = true};
    pare_err *const err = &t->err;
    pare_files *const files = pare_files_new();
    assert_non_null(files);
    pare_model *const f = toy_open(t, &c.input, cert, in), *const g =
                                                               toy_open(t, &c.output, cert, out);
    if (data) {
        assert_ok(toy_load(&set, t->a, f, toy_path(t, data), NULL, files, err), err);
        assert_ok(pare_files_identity(hex, files, toy_path(t, data), err), err);
    } else {
        assert_ok(pare_inputs_random(&set, t->a, f, 4, 2, seed, err), err);
    }
    assert_ok(pare_data_ref_make(&c.data, t->a, toy_path(t, cert), data ? toy_path(t, data) : NULL,
                                 hex, 1, 2, &set, err),
              err);
    if (data) toy_held_out(t, &c.data, &set);
    assert_ok(toy_prove(&c, t->a, NULL, f, g, &set, NULL, err), err);
    assert_ok(pare_cert_inflate(&c, err), err);
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

/* The claims of toy_made. */
enum {
    TOY_TRUE,
    TOY_OPEN,
    TOY_APRIORI,
    TOY_LEAST,
    TOY_SHARE,
    TOY_BALL,
    TOY_DRAWN,
    TOY_ENGINE,
    TOY_SEEN,
    TOY_OPTIMAL,
    TOY_PAPER,
    TOY_CLAIMS
};

/* Models are named by digits: toy_made(t, '1', '2') leads from model 1 to model 2. */
static inline pare_cert *toy_made(toy *t, char from, char to)
{
    pare_cert *const c = pare_alloc(t->a, 1, sizeof *c);
    assert_non_null(c);
    const pare_cert made = {.reduction = "toy",
                            .seed = UINT64_MAX,
                            .norm = TOY_NORM,
                            .domain = TOY_DOMAIN,
                            .proven = 0.1,
                            .measured = 0.1 / 3};
    static const pare_claim claims[] = {
        [TOY_TRUE] = {.kind = PARE_TICKET_LATTICE, .holds = PARE_TRUE, .value = 0.1, .limit = 0.2},
        [TOY_OPEN] = {.kind = PARE_APRIORI_APPLIES,
                      .text = "small \"quoted\"",
                      .holds = PARE_UNKNOWN},
        [TOY_APRIORI] = {.kind = PARE_APRIORI_OUTPUTS, .value = INFINITY, .domain = "all inputs"},
        [TOY_LEAST] = {.kind = PARE_ONE_LAYER_LEAST, .value = 0.05, .domain = "all inputs"},
        [TOY_SHARE] = {.kind = PARE_ROWS_CHANGED, .value = 0.75},
        [TOY_BALL] = {.kind = PARE_BALL_OUTPUTS,
                      .p = {0.1},
                      .text = "in every entry",
                      .value = 5e-324},
        [TOY_DRAWN] = {.kind = PARE_NEW_INPUT_OUTPUTS,
                       .p = {8, 0},
                       .value = 0.7,
                       .probability = 0.875,
                       .domain = "one more"},
        [TOY_ENGINE] = {.kind = PARE_ENGINE_DISTANCE, .value = 1e-6},
        [TOY_SEEN] = {.kind = PARE_RELATIVE_ERROR, .value = 0.3},
        [TOY_OPTIMAL] =
            {.kind = PARE_STREAM_OPTIMALITY, .p = {2}, .text = "h1", .value = 0.5, .limit = 0.25},
        [TOY_PAPER] = {.kind = PARE_PAPER_PLAIN, .value = 1e300},
    };
    *c = made;
    c->data = (pare_data_ref){.kind = "random", .count = 4, .tokens = 2};
    toy_hash(c->data.inputs_sha256, 'a');
    c->input.path = pare_sprintf(t->a, "%c.pare", from);
    c->output.path = pare_sprintf(t->a, "%c.pare", to);
    toy_hash(c->input.sha256, from);
    toy_hash(c->output.sha256, to);
    toy_hash(c->input.architecture, 'd');
    toy_hash(c->output.architecture, 'd');
    for (size_t i = 0; i < TOY_CLAIMS; i++)
        assert_ok(pare_cert_add(c, t->a, claims[i], &t->err), &t->err);
    c->output.tensors = pare_alloc(t->a, 2, sizeof *c->output.tensors);
    c->output.files = pare_alloc(t->a, 1, sizeof *c->output.files);
    assert_true(c->output.tensors && c->output.files);
    c->output.nfiles = 1;
    c->output.files[0].name = c->output.path;
    toy_hash(c->output.files[0].sha256, to);
    c->output.ntensors = 2;
    for (size_t i = 0; i < 2; i++) {
        c->output.tensors[i].name = i ? "head.out.bias" : "head.out.weight";
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
