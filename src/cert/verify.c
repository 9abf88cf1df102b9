/* pare verify: prove a certificate again from the files it names.
 *
 * The order is the argument. Bytes first (nothing is parsed before its hash is right), then the
 * tensors as they were loaded, then the inputs, then the proof by the room that owns the reduction,
 * and at last every claim against what was proven. A chain is verified link by link; its own bounds
 * are added up from what was proven again, and its `measured` is taken anew. */
#include "cert_parts.h"

#include <math.h>
#include <string.h>

/* Where the files are now. */
typedef struct spots {
    const char *input, *output, *data; /* data NULL: random */
} spots;

/* What is open while one certificate is looked at. */
typedef struct scene {
    pare_arena *a; /* the inputs and lists for comparing */
    pare_model *f, *g;
    pare_inputs set;
} scene;

static void scene_close(scene *s)
{
    pare_model_free(s->f);
    pare_model_free(s->g);
    pare_arena_free(s->a);
    *s = (scene){0};
}

/* ---- files --------------------------------------------------------------------------------- */

static pare_status find_files(spots *at, pare_arena *a, const pare_cert *c, const char *path,
                              const spots *override, pare_err *err)
{
    at->input = override->input ? override->input : pare_path_beside(a, path, c->input.path);
    at->output = override->output ? override->output : pare_path_beside(a, path, c->output.path);
    at->data = NULL;
    if (c->data.path)
        at->data = override->data ? override->data : pare_path_beside(a, path, c->data.path);
    if (!at->input || !at->output || (c->data.path && !at->data)) return pare_no_memory(err);
    return PARE_OK;
}

static pare_status same_bytes(const char *role, const char *path, const char *claimed,
                              pare_err *err)
{
    char hex[PARE_SHA256_HEX];
    if (!pare_file_exists(path) && !pare_is_dir(path))
        return pare_fail(err, PARE_ERR_IO, "the %s of the certificate is missing: %s", role, path);
    const pare_status st = cert_hash_path(hex, path, err);
    if (st != PARE_OK || strcmp(hex, claimed) == 0) return st;
    return pare_fail(err, PARE_ERR_VERIFY,
                     "%s %s is not the file of the certificate: its sha256 is %.12s..., not "
                     "%.12s...",
                     role, path, hex, claimed);
}

static pare_status all_bytes(const pare_cert *c, const spots *at, pare_err *err)
{
    pare_status st = same_bytes("input model", at->input, c->input.sha256, err);
    if (st == PARE_OK) st = same_bytes("output model", at->output, c->output.sha256, err);
    if (st == PARE_OK && at->data) st = same_bytes("data", at->data, c->data.sha256, err);
    return st;
}

static const pare_tensor_hash *find_tensor(const pare_file_ref *ref, const char *name)
{
    for (size_t i = 0; i < ref->ntensors; i++)
        if (strcmp(ref->tensors[i].name, name) == 0) return &ref->tensors[i];
    return NULL;
}

/* All tensors, none missing, none extra. */
static pare_status same_tensors(const char *role, const pare_file_ref *claimed, const pare_model *m,
                                pare_arena *a, pare_err *err)
{
    pare_file_ref now = {0};
    pare_status st = cert_tensor_hashes(&now.tensors, &now.ntensors, a, m, err);
    for (size_t i = 0; st == PARE_OK && i < now.ntensors; i++) {
        const pare_tensor_hash *const t = &now.tensors[i];
        const pare_tensor_hash *const c = find_tensor(claimed, t->name);
        if (!c)
            st = pare_fail(err, PARE_ERR_VERIFY, "tensor %s of the %s is not in the certificate",
                           t->name, role);
        else if (strcmp(c->sha256, t->sha256) != 0)
            st = pare_fail(err, PARE_ERR_VERIFY,
                           "tensor %s of the %s has sha256 %.12s..., the certificate says "
                           "%.12s...",
                           t->name, role, t->sha256, c->sha256);
    }
    for (size_t i = 0; st == PARE_OK && i < claimed->ntensors; i++)
        if (!find_tensor(&now, claimed->tensors[i].name))
            st = pare_fail(err, PARE_ERR_VERIFY, "tensor %s of the certificate is not in the %s",
                           claimed->tensors[i].name, role);
    return st;
}

/* ---- inputs -------------------------------------------------------------------------------- */

static pare_status get_inputs(scene *s, const pare_cert *c, const char *data,
                              const pare_verify_opts *opts, pare_err *err)
{
    char hex[PARE_SHA256_HEX];
    const pare_data_ref *const d = &c->data;
    pare_status st;
    if (!data)
        st = pare_inputs_random(&s->set, s->a, s->f, d->count, d->tokens, c->seed, err);
    else if (opts->load) {
        pare_files *const files = pare_files_new();
        st = files ? opts->load(&s->set, s->a, s->f, data, d->split, files, err)
                   : pare_no_memory(err);
        pare_files_free(files);
    } else
        st = pare_fail(err, PARE_ERR_USAGE, "no way was given to load the inputs in %s", data);
    if (st != PARE_OK) return st;
    if (strcmp(d->kind, "part") == 0) {
        const pare_inputs all = s->set;
        st = pare_inputs_part(&s->set, s->a, &all, d->first, d->count, d->tokens, err);
        if (st == PARE_ERR_INPUT)
            return pare_fail(err, PARE_ERR_VERIFY,
                             "inputs %zu and %zu more are not all among the %zu of the data file",
                             d->first, d->count - 1, all.n);
        if (st != PARE_OK) return st;
    }
    if (s->set.n != d->count)
        return pare_fail(err, PARE_ERR_VERIFY, "there are %zu inputs, the certificate says %zu",
                         s->set.n, d->count);
    st = pare_inputs_sha256(hex, &s->set, err);
    if (st != PARE_OK || strcmp(hex, d->inputs_sha256) == 0) return st;
    return pare_fail(err, PARE_ERR_VERIFY,
                     "the inputs are not those of the certificate: sha256 %.12s..., not %.12s...",
                     hex, d->inputs_sha256);
}

static pare_status same_seal(const pare_cert *c, pare_err *err)
{
    char hex[PARE_SHA256_HEX];
    const pare_status st = cert_seal(hex, c, err);
    if (st != PARE_OK || strcmp(hex, c->data.seal) == 0) return st;
    return pare_fail(err, PARE_ERR_VERIFY,
                     "data.seal is %.12s..., not %.12s...: reduction, seed or data were changed",
                     c->data.seal, hex);
}

/* Everything a proof needs, checked. `s` is zero before; scene_close afterwards in any case. */
static pare_status scene_open(scene *s, const pare_cert *c, const char *path, const spots *override,
                              const pare_verify_opts *opts, pare_err *err)
{
    spots at;
    s->a = pare_arena_new();
    if (!s->a) return pare_no_memory(err);
    pare_status st = same_seal(c, err);
    if (st == PARE_OK) st = find_files(&at, s->a, c, path, override, err);
    if (st == PARE_OK) st = all_bytes(c, &at, err);
    if (st == PARE_OK) st = pare_model_load(&s->f, at.input, err);
    if (st == PARE_OK) st = pare_model_load(&s->g, at.output, err);
    if (st == PARE_OK) st = same_tensors("input model", &c->input, s->f, s->a, err);
    if (st == PARE_OK) st = same_tensors("output model", &c->output, s->g, s->a, err);
    if (st == PARE_OK) st = get_inputs(s, c, at.data, opts, err);
    return st;
}

/* ---- one cut ------------------------------------------------------------------------------- */

static const pare_prover *find_prover(const pare_verify_opts *opts, const char *reduction)
{
    for (size_t i = 0; i < opts->nprovers; i++)
        if (strcmp(opts->provers[i].reduction, reduction) == 0) return &opts->provers[i];
    return NULL;
}

/* What a prover starts from: who it is about, and bounds that fail if they are forgotten. */
static pare_cert blank(const pare_cert *c)
{
    pare_cert again = {.reduction = c->reduction, .seed = c->seed};
    again.input = c->input;
    again.output = c->output;
    again.data = c->data;
    again.apriori = again.proven = again.measured = again.rounding = NAN;
    return again;
}

static pare_status verify_cut(pare_cert *again, pare_arena *a, const pare_cert *c, const char *path,
                              const spots *override, const pare_verify_opts *opts, pare_err *err)
{
    scene s = {0};
    const pare_prover *const p = find_prover(opts, c->reduction);
    if (!p)
        return pare_fail(err, PARE_ERR_INPUT,
                         "reduction: this program does not know \"%.80s\" and can not prove it",
                         c->reduction);
    *again = blank(c);
    pare_status st = scene_open(&s, c, path, override, opts, err);
    if (st == PARE_OK) st = p->prove(again, a, c, s.f, s.g, &s.set, opts->exec, err);
    if (st == PARE_OK) st = pare_cert_compare(c, again, err);
    scene_close(&s);
    return st;
}

/* ---- a chain ------------------------------------------------------------------------------- */

/* The ends of the chain and its inputs are those of its links. */
static pare_status ends_fit(const pare_cert *c, pare_arena *a, pare_err *err)
{
    const pare_cert *const first = c->chain[0], *const last = c->chain[c->nchain - 1];
    if (strcmp(c->input.sha256, first->input.sha256) != 0)
        return pare_fail(err, PARE_ERR_VERIFY, "the input of the chain is not that of chain[0]");
    if (strcmp(c->output.sha256, last->output.sha256) != 0)
        return pare_fail(err, PARE_ERR_VERIFY, "the output of the chain is not that of chain[%zu]",
                         c->nchain - 1);
    if (strcmp(c->data.inputs_sha256, first->data.inputs_sha256) != 0)
        return pare_fail(err, PARE_ERR_VERIFY, "the inputs of the chain are not those of chain[0]");
    return cert_links_fit(c->chain, c->nchain, a, PARE_ERR_VERIFY, err);
}

static pare_status verify_links(pare_cert **again, pare_arena *a, const pare_cert *c,
                                const char *path, const pare_verify_opts *opts, pare_err *err)
{
    pare_status st = PARE_OK;
    for (size_t i = 0; st == PARE_OK && i < c->nchain; i++) {
        const spots override = {i == 0 ? opts->input : NULL,
                                i + 1 == c->nchain ? opts->output : NULL, opts->data};
        char name[40];
        snprintf(name, sizeof name, "chain[%zu]", i);
        again[i] = pare_alloc(a, 1, sizeof **again);
        if (!again[i]) return pare_no_memory(err);
        st = verify_cut(again[i], a, c->chain[i], path, &override, opts, err);
        if (st != PARE_OK) pare_err_prefix(err, name);
    }
    return st;
}

static pare_status verify_chain(pare_arena *a, const pare_cert *c, const char *path,
                                const pare_verify_opts *opts, pare_err *err)
{
    scene s = {0};
    pare_gap gap;
    pare_cert again = blank(c);
    const spots override = {opts->input, opts->output, opts->data};
    pare_cert **const links = pare_alloc(a, c->nchain, sizeof *links);
    if (!links) return pare_no_memory(err);
    pare_status st = ends_fit(c, a, err);
    if (st == PARE_OK) st = verify_links(links, a, c, path, opts, err);
    if (st == PARE_OK) st = cert_add_up(&again, a, links, c->nchain, err);
    if (st == PARE_OK) st = scene_open(&s, c, path, &override, opts, err);
    if (st == PARE_OK) st = pare_prove_gap(&gap, s.f, s.g, &s.set, opts->exec, err);
    if (st == PARE_OK) {
        again.measured = gap.measured;
        again.measured_slack = pare_measured_slack(&gap);
        st = pare_cert_compare(c, &again, err);
    }
    scene_close(&s);
    return st;
}

pare_status pare_cert_verify(const char *path, const pare_verify_opts *opts, pare_err *err)
{
    pare_cert *c = NULL, again;
    pare_arena *const a = pare_arena_new();
    if (!a) return pare_no_memory(err);
    const spots override = {opts->input, opts->output, opts->data};
    pare_status st = pare_cert_read(&c, a, path, err);
    if (st == PARE_OK) {
        st = c->nchain ? verify_chain(a, c, path, opts, err)
                       : verify_cut(&again, a, c, path, &override, opts, err);
        if (st != PARE_OK) pare_err_prefix(err, path);
    }
    pare_arena_free(a);
    return st;
}
