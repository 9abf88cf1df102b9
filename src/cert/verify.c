/* verify.c - prove a certificate again from the files it names.
 *
 * Every file is opened once and read into memory: what is hashed is what is parsed. A model is
 * compared by its bytes, by its architecture in canonical form and by every tensor as it was
 * loaded; the inputs by their bytes and by what the model sees of them. Then the module that owns
 * the reduction proves it again, and at last every claim is held against what was proven. A chain
 * is verified link by link; its own bounds are added up from what was proven again, and its
 * `measured` is taken anew. Provers are those that wrote the certificate: a fault in them is not
 * found here. */
#include "cert_internal.h"

#include "base/support.h"
#include "conformal.h"
#include "data/heldout_draw.h"
#include "prove.h"
#include "model/inputs.h"
#include <math.h>
#include <string.h>

/* A model that was read, under the path it was asked for. */
typedef struct opened {
    const char *path;
    pare_model *m;
    pare_file_ref ref; /* what it is */
} opened;

/* The bytes of a data file: links of a chain speak of the same inputs. */
typedef struct opened_data {
    const char *path;
    size_t split;
    pare_files *files;
} opened_data;

/* One verification: what is open, and what it needs everywhere. */
typedef struct verifier {
    pare_arena *a;
    const pare_verify_opts *opts;
    const char *path; /* of the certificate */
    size_t nopened, capacity;
    opened *opened; /* the models of a chain: one more than it has links */
    size_t ndata;
    opened_data *data; /* of each link and of the chain itself, each path once */
    pare_err *err;
    const pare_exec *exec; /* of what is at work */
    pare_steps steps;      /* of a chain */
} verifier;

/* ---- models -------------------------------------------------------------------------------- */

static pare_status refuse_bytes(const char *role, const char *path, const char *is,
                                const char *claimed, pare_err *err)
{
    return pare_fail(err, PARE_ERR_VERIFY,
                     "%s %s is not the file that the certificate is about: its sha256 is "
                     "%.12s..., not %.12s...",
                     role, path, is, claimed);
}

/* A file that was changed is a lie, also where it can no longer be read. */
static pare_status changed_file(const char *role, const char *path, const pare_file_ref *claimed,
                                const pare_files *files, pare_status otherwise, pare_err *err)
{
    if (claimed->nfiles != 1 || pare_files_count(files) != 1 ||
        strcmp(pare_files_sha256(files, 0), claimed->sha256) == 0)
        return otherwise;
    return refuse_bytes(role, path, pare_files_sha256(files, 0), claimed->sha256, err);
}

static pare_status open_model(verifier *v, const opened **out, const char *role, const char *path,
                              const pare_file_ref *claimed)
{
    for (size_t i = 0; i < v->nopened; i++)
        if (strcmp(v->opened[i].path, path) == 0) return *out = &v->opened[i], PARE_OK;
    if (!pare_file_exists(path))
        return pare_fail(v->err, PARE_ERR_IO, "the %s of the certificate is missing: %s", role,
                         path);
    PARE_ASSERT(v->nopened < v->capacity);
    opened *const o = &v->opened[v->nopened];
    pare_files *const files = pare_files_new();
    if (!files) return pare_no_memory(v->err);
    *o = (opened){.path = path};
    pare_status st = pare_model_load_as(&o->m, path, &claimed->read_as, files, v->err);
    if (st == PARE_OK)
        st = pare_file_ref_make(&o->ref, v->a, v->path, path, files, o->m, v->err);
    else if (st == PARE_ERR_INPUT || st == PARE_ERR_NONFINITE)
        st = changed_file(role, path, claimed, files, st, v->err);
    pare_files_free(files);
    if (st == PARE_OK)
        v->nopened++;
    else
        pare_model_free(o->m);
    *out = o;
    return st;
}

static const pare_named_hash *find_hash(const pare_named_hash *list, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i].name, name) == 0) return &list[i];
    return NULL;
}

/* The same names with the same hashes, none missing, none extra. */
static pare_status same_hashes(const char *what, const char *role, const pare_named_hash *claimed,
                               size_t nclaimed, const pare_named_hash *now, size_t n, pare_err *err)
{
    for (size_t i = 0; i < n; i++) {
        const pare_named_hash *const c = find_hash(claimed, nclaimed, now[i].name);
        if (!c)
            return pare_fail(err, PARE_ERR_VERIFY, "%s %s of the %s is not in the certificate",
                             what, now[i].name, role);
        if (strcmp(c->sha256, now[i].sha256) != 0)
            return pare_fail(err, PARE_ERR_VERIFY,
                             "%s %s of the %s has sha256 %.12s..., the certificate says %.12s...",
                             what, now[i].name, role, now[i].sha256, c->sha256);
    }
    for (size_t i = 0; i < nclaimed; i++)
        if (!find_hash(now, n, claimed[i].name))
            return pare_fail(err, PARE_ERR_VERIFY, "%s %s of the certificate is not in the %s",
                             what, claimed[i].name, role);
    return PARE_OK;
}

/* A single file may have another name: its bytes are what counts. */
static pare_status same_model(const char *role, const pare_file_ref *claimed, const opened *o,
                              pare_err *err)
{
    const pare_file_ref *const now = &o->ref;
    if (strcmp(claimed->sha256, now->sha256) != 0)
        return refuse_bytes(role, o->path, now->sha256, claimed->sha256, err);
    const bool one = claimed->nfiles == 1 && now->nfiles == 1 &&
                     strcmp(claimed->files[0].sha256, now->files[0].sha256) == 0;
    pare_status st = one ? PARE_OK
                         : same_hashes("file", role, claimed->files, claimed->nfiles, now->files,
                                       now->nfiles, err);
    if (st == PARE_OK && strcmp(claimed->architecture, now->architecture) != 0)
        st = pare_fail(err, PARE_ERR_VERIFY,
                       "%s %s has another architecture than the certificate says: sha256 "
                       "%.12s..., not %.12s...",
                       role, o->path, now->architecture, claimed->architecture);
    if (st == PARE_OK)
        st = same_hashes("tensor", role, claimed->tensors, claimed->ntensors, now->tensors,
                         now->ntensors, err);
    return st;
}

/* ---- inputs -------------------------------------------------------------------------------- */

static pare_status data_files(verifier *v, pare_files **out, const char *path,
                              const pare_data_ref *d)
{
    for (size_t i = 0; i < v->ndata; i++)
        if (v->data[i].split == d->split && strcmp(v->data[i].path, path) == 0)
            return *out = v->data[i].files, PARE_OK;
    PARE_ASSERT(v->ndata < v->capacity);
    *out = pare_files_new();
    if (!*out) return pare_no_memory(v->err);
    v->data[v->ndata++] = (opened_data){path, d->split, *out};
    return PARE_OK;
}

static pare_status load_file(verifier *v, pare_inputs *set, const pare_cert *c, const pare_model *f,
                             const char *path)
{
    const pare_data_ref *const d = &c->data;
    const pare_data_opts read = {
        .split = d->split, .column = d->column, .seed = c->seed, .exec = v->exec};
    char hex[PARE_SHA256_HEX] = "";
    pare_files *files = NULL;
    size_t texts;
    if (!v->opts->load)
        return pare_fail(v->err, PARE_ERR_USAGE, "no way was given to load the inputs in %s", path);
    if (pare_data_is_self(path, &texts)) {
        pare_status st = v->opts->load(set, v->a, f, path, &read, NULL, v->err);
        if (!st) st = pare_inputs_sha256(hex, set, v->err);
        if (st || strcmp(hex, d->sha256) == 0) return st;
        return pare_fail(
            v->err, PARE_ERR_VERIFY,
            "the texts that the model writes itself here (%s, seed %llu) are not those of "
            "the certificate: sha256 %.12s..., not %.12s...",
            path, (unsigned long long)c->seed, hex, d->sha256);
    }
    pare_status st = data_files(v, &files, path, d);
    if (st != PARE_OK) return st;
    if (pare_files_count(files) == 0 && !pare_file_exists(path))
        return pare_fail(v->err, PARE_ERR_IO, "the data of the certificate is missing: %s", path);
    st = v->opts->load(set, v->a, f, path, &read, files, v->err);
    const bool unreadable = st == PARE_ERR_INPUT || st == PARE_ERR_NONFINITE;
    if ((st == PARE_OK || unreadable) && pare_files_count(files) > 0) {
        const pare_status hashed = pare_files_identity(hex, files, path, v->err);
        if (hashed != PARE_OK)
            st = hashed;
        else if (strcmp(hex, d->sha256) != 0)
            st = refuse_bytes("data", path, hex, d->sha256, v->err);
    }
    return st;
}

/* The numbers of a part are those that the seed draws from this file. Without numbers it is all of
 * the file, or inputs one behind the other, of which nothing says that they were drawn. */
static pare_status check_draw(verifier *v, const pare_cert *c, const pare_inputs *all)
{
    const pare_data_ref *const d = &c->data;
    pare_heldout_draw draw;
    size_t *numbers = NULL, n = 0;
    if (!d->numbers) {
        if (d->candidates == 0 || (d->first == 0 && d->count == all->n)) return PARE_OK;
        return pare_fail(v->err, PARE_ERR_VERIFY,
                         "data.first: inputs one behind the other are not drawn: nothing follows "
                         "for new inputs");
    }
    pare_status st = pare_heldout_draw_make(&draw, v->a, all, d->count, true, c->seed, v->err);
    if (!st && d->count <= draw.n)
        st = pare_heldout_proven(&numbers, &n, v->a, &draw, d->count, v->err);
    if (st) return st;
    bool same = n == d->count;
    for (size_t i = 0; same && i < n; i++) same = numbers[i] == d->numbers[i];
    return same ? PARE_OK
                : pare_fail(v->err, PARE_ERR_VERIFY,
                            "data.numbers: not the inputs that the seed %llu draws from the %zu of "
                            "the data file",
                            (unsigned long long)c->seed, all->n);
}

static pare_status get_inputs(verifier *v, pare_inputs *set, const pare_cert *c,
                              const pare_model *f, const char *path)
{
    char hex[PARE_SHA256_HEX];
    const pare_data_ref *const d = &c->data;
    pare_status st = path ? load_file(v, set, c, f, path)
                          : pare_inputs_random(set, v->a, f, d->count, d->tokens, c->seed, v->err);
    if (st != PARE_OK) return st;
    if (strcmp(d->kind, "part") == 0) {
        const pare_inputs all = *set;
        st = check_draw(v, c, &all);
        if (st != PARE_OK) return st;
        st = d->numbers ? pare_inputs_pick(set, v->a, &all, d->numbers, d->count, d->tokens, v->err)
                        : pare_inputs_part(set, v->a, &all, d->first, d->count, d->tokens, v->err);
        if (st == PARE_ERR_INPUT && d->numbers)
            return pare_fail(v->err, PARE_ERR_VERIFY,
                             "data.numbers: not all among the %zu inputs of the data file", all.n);
        if (st == PARE_ERR_INPUT)
            return pare_fail(
                v->err, PARE_ERR_VERIFY,
                "input %zu and %zu more are not all among the %zu inputs of the data file",
                d->first, d->count - 1, all.n);
        if (st != PARE_OK) return st;
    }
    if (d->split > 0 && !(set->n > 0 && set->in[0].graph))
        return pare_fail(v->err, PARE_ERR_VERIFY,
                         "data.split: these inputs have no splits; the certificate names split %zu",
                         d->split);
    if (set->n != d->count)
        return pare_fail(v->err, PARE_ERR_VERIFY, "there are %zu inputs, the certificate says %zu",
                         set->n, d->count);
    st = pare_inputs_sha256(hex, set, v->err);
    if (st != PARE_OK || strcmp(hex, d->inputs_sha256) == 0) return st;
    return pare_fail(v->err, PARE_ERR_VERIFY,
                     "the inputs are not those of the certificate: sha256 %.12s..., not %.12s...",
                     hex, d->inputs_sha256);
}

/* ---- one cut ------------------------------------------------------------------------------- */

typedef struct spots {
    const char *input, *output, *data; /* where the files are now; data NULL: random */
} spots;

/* Texts of the model itself are nowhere. */
static const char *place_of_data(pare_arena *a, const char *cert, const pare_data_ref *d)
{
    size_t texts;
    return pare_data_is_self(d->path, &texts) ? d->path : pare_path_beside(a, cert, d->path);
}

static pare_status find_files(verifier *v, spots *at, const pare_cert *c, const spots *override)
{
    at->input = override->input ? override->input : pare_path_beside(v->a, v->path, c->input.path);
    at->output =
        override->output ? override->output : pare_path_beside(v->a, v->path, c->output.path);
    at->data = NULL;
    if (c->data.path)
        at->data = override->data ? override->data : place_of_data(v->a, v->path, &c->data);
    if (!at->input || !at->output || (c->data.path && !at->data)) return pare_no_memory(v->err);
    return PARE_OK;
}

/* What a proof needs, each compared with the certificate. */
static pare_status open_all(verifier *v, const opened **f, const opened **g, pare_inputs *set,
                            const pare_cert *c, const spots *override)
{
    spots at;
    pare_status st = find_files(v, &at, c, override);
    if (st == PARE_OK) st = open_model(v, f, "input model", at.input, &c->input);
    if (st == PARE_OK) st = same_model("input model", &c->input, *f, v->err);
    if (st == PARE_OK) st = open_model(v, g, "output model", at.output, &c->output);
    if (st == PARE_OK) st = same_model("output model", &c->output, *g, v->err);
    if (st == PARE_OK) st = get_inputs(v, set, c, (*f)->m, at.data);
    if (st == PARE_OK) st = pare_heldout_check(&c->data, v->a, set, v->err);
    return st;
}

static const pare_prover *find_prover(const pare_verify_opts *opts, const char *reduction)
{
    for (size_t i = 0; i < opts->nprovers; i++)
        if (strcmp(opts->provers[i].reduction, reduction) == 0) return &opts->provers[i];
    return NULL;
}

/* What a prover starts from: who it is about, and a headline that fails if it is forgotten. */
static pare_cert blank_certificate(const pare_cert *c, bool evidence)
{
    return (pare_cert){.reduction = c->reduction,
                       .seed = c->seed,
                       .input = c->input,
                       .output = c->output,
                       .data = c->data,
                       .proven = NAN,
                       .measured = NAN,
                       .measured_radius = NAN,
                       .evidence = evidence};
}

static pare_status verify_cut(verifier *v, pare_cert *again, const pare_cert *c,
                              const spots *override)
{
    const opened *f, *g;
    pare_inputs set = {0};
    const pare_prover *const p = find_prover(v->opts, c->reduction);
    if (!p)
        return pare_fail(
            v->err, PARE_ERR_INPUT,
            "reduction: this version of pare does not know \"%.80s\" and cannot prove it",
            c->reduction);
    *again = blank_certificate(c, v->opts->evidence);
    pare_status st = open_all(v, &f, &g, &set, c, override);
    if (st == PARE_OK) st = p->prove(again, v->a, c, f->m, g->m, &set, v->exec, v->err);
    if (st == PARE_OK) st = pare_cert_compare(c, again, v->err);
    return st;
}

/* ---- a chain ------------------------------------------------------------------------------- */

/* The ends of the chain and its inputs are those of its links. */
static pare_status ends_fit(verifier *v, const pare_cert *c)
{
    const pare_cert *const first = c->chain[0], *const last = c->chain[c->nchain - 1];
    if (strcmp(c->input.sha256, first->input.sha256) != 0)
        return pare_fail(v->err, PARE_ERR_VERIFY, "the input of the chain is not that of chain[0]");
    if (strcmp(c->output.sha256, last->output.sha256) != 0)
        return pare_fail(v->err, PARE_ERR_VERIFY,
                         "the output of the chain is not that of chain[%zu]", c->nchain - 1);
    if (strcmp(c->data.inputs_sha256, first->data.inputs_sha256) != 0 ||
        c->data.split != first->data.split)
        return pare_fail(v->err, PARE_ERR_VERIFY,
                         "the inputs of the chain are not those of chain[0]");
    return cert_links_fit(c->chain, c->nchain, v->a, PARE_ERR_VERIFY, v->err);
}

static pare_status verify_links(verifier *v, pare_cert **again, const pare_cert *c)
{
    pare_status st = PARE_OK;
    for (size_t i = 0; st == PARE_OK && i < c->nchain; i++) {
        const spots override = {i == 0 ? v->opts->input : NULL,
                                i + 1 == c->nchain ? v->opts->output : NULL, v->opts->data};
        char name[40];
        snprintf(name, sizeof name, "chain[%zu]", i);
        again[i] = pare_alloc(v->a, 1, sizeof **again);
        if (!again[i]) return pare_no_memory(v->err);
        v->exec = pare_step(&v->steps, NULL, 1);
        st = verify_cut(v, again[i], c->chain[i], &override);
        if (st != PARE_OK) pare_err_prefix(v->err, name);
    }
    return st;
}

static pare_status verify_chain(verifier *v, pare_cert *again, const pare_cert *c)
{
    const opened *f, *g;
    pare_inputs set = {0};
    pare_gap gap;
    const double ends = 2; /* beside the proof of one link */
    v->steps = pare_steps_of(v->opts->exec, (double)c->nchain + ends);
    *again = blank_certificate(c, v->opts->evidence);
    const spots override = {v->opts->input, v->opts->output, v->opts->data};
    pare_cert **const links = pare_alloc(v->a, c->nchain, sizeof *links);
    if (!links) return pare_no_memory(v->err);
    pare_status st = ends_fit(v, c);
    if (st == PARE_OK) st = verify_links(v, links, c);
    if (st == PARE_OK) st = cert_add_up(again, v->a, links, c->nchain, v->err);
    if (st == PARE_OK) st = open_all(v, &f, &g, &set, c, &override);
    v->exec = pare_step(&v->steps, "measure", ends);
    if (st == PARE_OK) st = pare_prove_gap(&gap, f->m, g->m, &set, v->exec, v->err);
    if (st != PARE_OK) return st;
    again->chain = links;
    again->nchain = c->nchain;
    again->measured = gap.measured;
    again->measured_radius = gap.radius;
    return pare_cert_compare(c, again, v->err);
}

/* ---- all of it ----------------------------------------------------------------------------- */

static pare_status begin(verifier *v, pare_arena *a, const pare_cert *c, const char *path,
                         const pare_verify_opts *opts, pare_err *err)
{
    *v = (verifier){.a = a,
                    .opts = opts,
                    .exec = opts->exec,
                    .path = path,
                    .capacity = 2 * c->nchain + 4,
                    .err = err};
    v->opened = pare_alloc(a, v->capacity, sizeof *v->opened);
    v->data = pare_alloc(a, v->capacity, sizeof *v->data);
    return v->opened && v->data ? PARE_OK : pare_no_memory(err);
}

static void close_files(const verifier *v)
{
    for (size_t i = 0; i < v->nopened; i++) pare_model_free(v->opened[i].m);
    for (size_t i = 0; i < v->ndata; i++) pare_files_free(v->data[i].files);
}

pare_status pare_cert_check(pare_cert **again, pare_arena *a, const pare_cert *c, const char *path,
                            const pare_verify_opts *opts, pare_err *err)
{
    verifier v;
    const spots override = {opts->input, opts->output, opts->data};
    pare_cert *const out = pare_alloc(a, 1, sizeof *out);
    *again = NULL;
    pare_status st = out ? begin(&v, a, c, path, opts, err) : pare_no_memory(err);
    if (st != PARE_OK) return st;
    st = c->nchain ? verify_chain(&v, out, c) : verify_cut(&v, out, c, &override);
    close_files(&v);
    if (st == PARE_OK)
        *again = out;
    else
        pare_err_prefix(err, path);
    return st;
}

static pare_status use_files(verifier *v, const pare_cert *c, const spots *override, size_t link,
                             pare_cert_files_fn *use, void *self)
{
    const opened *f, *g;
    pare_inputs set = {0};
    const pare_status st = open_all(v, &f, &g, &set, c, override);
    return st != PARE_OK ? st : use(self, link, c, f->m, g->m, &set, v->err);
}

pare_status pare_cert_open_files(pare_arena *a, const pare_cert *c, const char *path,
                                 const pare_verify_opts *opts, pare_cert_files_fn *use, void *self,
                                 pare_err *err)
{
    verifier v;
    const spots ends = {opts->input, opts->output, opts->data};
    pare_status st = begin(&v, a, c, path, opts, err);
    if (st != PARE_OK) return st;
    if (c->nchain) st = ends_fit(&v, c);
    for (size_t i = 0; st == PARE_OK && i < c->nchain; i++) {
        const spots override = {i == 0 ? opts->input : NULL,
                                i + 1 == c->nchain ? opts->output : NULL, opts->data};
        st = use_files(&v, c->chain[i], &override, i + 1, use, self);
    }
    if (st == PARE_OK) st = use_files(&v, c, &ends, 0, use, self);
    close_files(&v);
    if (st != PARE_OK) pare_err_prefix(err, path);
    return st;
}

pare_status pare_cert_verify(const char *path, const pare_verify_opts *opts, pare_err *err)
{
    pare_cert *c = NULL, *again;
    pare_arena *const a = pare_arena_new();
    if (!a) return pare_no_memory(err);
    pare_status st = pare_cert_read(&c, a, path, err);
    if (st == PARE_OK) st = pare_cert_check(&again, a, c, path, opts, err);
    pare_arena_free(a);
    return st;
}
