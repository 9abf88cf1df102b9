/* compose.c - certificates of a chain of cuts become one.
 *
 *   |f - h| <= |f - g| + |g - h|   on every input both sides speak about, entry by entry;
 *
 * hence bounds add up when norm, domain and inputs are the same and the models in the middle are the
 * same bytes; so do distances of outputs scaled to length 1, which gives a bound on cosines. The
 * inputs of a file may be named in several ways (whole, or at most so many tokens of each where none
 * has more): if they have the same hash they are the same. Nothing else composes: the other claims
 * stay in the links, which the composed certificate carries whole. */
#include "cert_internal.h"

#include <math.h>
#include "prove.h"
#include "linalg/bounds.h"
#include <string.h>

/* The domain is nothing but the words for the inputs. */
static bool about_inputs(const pare_cert *c, pare_arena *a)
{
    const char *const words = pare_domain_text(a, &c->data);
    return words && strcmp(c->domain, words) == 0;
}

static bool same_inputs(const pare_cert *a, const pare_cert *b, pare_arena *arena)
{
    return strcmp(a->data.inputs_sha256, b->data.inputs_sha256) == 0 && about_inputs(a, arena) &&
           about_inputs(b, arena);
}

static pare_status pair_fits(const pare_cert *a, const pare_cert *b, size_t i, pare_arena *arena,
                             pare_status code, pare_err *err)
{
    if (strcmp(a->output.sha256, b->input.sha256) != 0)
        return pare_fail(err, code,
                         "cuts %zu and %zu do not follow each other: the output of one is %s "
                         "(sha256 %.12s...), the input of the next is %s (sha256 %.12s...); give "
                         "the certificates in the order of the cuts",
                         i + 1, i + 2, a->output.path, a->output.sha256, b->input.path,
                         b->input.sha256);
    if (strcmp(a->output.architecture, b->input.architecture) != 0)
        return pare_fail(err, code,
                         "cuts %zu and %zu do not follow each other: %s and %s have different "
                         "architectures",
                         i + 1, i + 2, a->output.path, b->input.path);
    if (strcmp(a->norm, b->norm) != 0)
        return pare_fail(err, code, "cuts %zu and %zu are proven in different norms: %s and %s",
                         i + 1, i + 2, a->norm, b->norm);
    if (same_inputs(a, b, arena)) return PARE_OK;
    if (strcmp(a->domain, b->domain) != 0)
        return pare_fail(err, code,
                         "cuts %zu and %zu are proven on different inputs: \"%s\" and \"%s\"; make "
                         "one of them again so that both are proven on the same inputs",
                         i + 1, i + 2, a->domain, b->domain);
    if (strcmp(a->data.kind, b->data.kind) != 0 ||
        strcmp(a->data.inputs_sha256, b->data.inputs_sha256) != 0)
        return pare_fail(
            err, code,
            "cuts %zu and %zu are proven on different inputs (%s, sha256 %.12s..., and "
            "%s, sha256 %.12s...); make one of them again with the data of the other, "
            "or with its seed where the inputs are random",
            i + 1, i + 2, a->data.kind, a->data.inputs_sha256, b->data.kind, b->data.inputs_sha256);
    return PARE_OK;
}

pare_status cert_links_fit(pare_cert *const *links, size_t n, pare_arena *a, pare_status code,
                           pare_err *err)
{
    pare_status st = PARE_OK;
    for (size_t i = 0; st == PARE_OK && i + 1 < n; i++)
        st = pair_fits(links[i], links[i + 1], i, a, code, err);
    return st;
}

/* False if one is false, else unknown if one is unknown. */
static pare_truth all_hold(const pare_cert *c)
{
    pare_truth all = PARE_TRUE;
    for (size_t i = 0; i < c->nclaims && all != PARE_FALSE; i++)
        if (pare_kinds[c->claims[i].kind].section == PARE_HYPOTHESIS &&
            c->claims[i].holds != PARE_TRUE)
            all = c->claims[i].holds;
    return all;
}

/* The bound of all links from sizes and norms alone, where each has one on the same domain. */
static pare_status add_apriori(pare_cert *out, pare_arena *a, pare_cert *const *links, size_t n,
                               pare_err *err)
{
    pare_ub sum = {0};
    const pare_claim *const first = pare_cert_find(links[0], PARE_APRIORI_OUTPUTS);
    for (size_t i = 0; i < n; i++) {
        const pare_claim *const t = pare_cert_find(links[i], PARE_APRIORI_OUTPUTS);
        if (!t || strcmp(t->domain, first->domain) != 0) return PARE_OK;
        sum = pare_ub_add(sum, (pare_ub){t->value});
    }
    return pare_cert_add(
        out, a, (pare_claim){.kind = PARE_APRIORI_OUTPUTS, .value = sum.v, .domain = first->domain},
        err);
}

/* 1 - cosine of the whole chain. D = 1 - cos is half the square of the distance of two unit vectors, and
 * these distances add up: sqrt(D) <= sqrt(D_1) + ... + sqrt(D_n), row by row. */
static pare_status add_cosine(pare_cert *out, pare_arena *a, pare_cert *const *links, size_t n,
                              pare_err *err)
{
    pare_ub sum = {0};
    pare_claim c = {.kind = PARE_COSINE_DISTANCE};
    for (size_t i = 0; i < n; i++) {
        const pare_claim *const t = pare_cert_find(links[i], PARE_COSINE_DISTANCE);
        if (!t || t->p[1] != 0 || (i > 0 && t->p[0] != c.p[0])) return PARE_OK;
        c.p[0] = t->p[0];
        sum = pare_ub_add(sum, pare_ub_sqrt((pare_ub){t->value}));
    }
    c.value = fmin(2, pare_ub_mul(sum, sum).v);
    return pare_cert_add(out, a, c, err);
}

pare_status cert_add_up(pare_cert *out, pare_arena *a, pare_cert *const *links, size_t n,
                        pare_err *err)
{
    pare_ub proven = {0};
    pare_status st = PARE_OK;
    out->measured = 0;
    for (size_t i = 0; !st && i < n; i++) {
        const pare_cert *const c = links[i];
        proven = pare_ub_add(proven, (pare_ub){c->proven});
        out->measured += c->measured;
        st = pare_cert_add(out, a,
                           (pare_claim){.kind = PARE_LINK_HYPOTHESES,
                                        .p = {(double)i},
                                        .text = c->reduction,
                                        .holds = all_hold(c)},
                           err);
    }
    out->reduction = CERT_CHAIN;
    out->norm = links[0]->norm;
    out->domain = links[0]->domain;
    out->proven = proven.v;
    if (!st) st = add_apriori(out, a, links, n, err);
    return st ? st : add_cosine(out, a, links, n, err);
}

/* ---- copies of the links ----------------------------------------------------------------------
 */

static bool move_path(const char **path, pare_arena *a, const char *from, const char *to)
{
    const char *const here = pare_path_beside(a, from, *path);
    *path = here ? pare_path_relative(a, to, here) : NULL;
    return *path != NULL;
}

/* `link`, whose paths are seen from `from`, as it reads from `to`. */
static pare_status copy_link(pare_cert **out, pare_arena *a, const pare_cert *link,
                             const char *from, const char *to, pare_err *err)
{
    pare_cert *const c = pare_alloc(a, 1, sizeof *c);
    if (!c) return pare_no_memory(err);
    *c = *link;
    if (!move_path(&c->input.path, a, from, to) || !move_path(&c->output.path, a, from, to) ||
        (c->data.path && !move_path(&c->data.path, a, from, to)))
        return pare_no_memory(err);
    *out = c;
    return PARE_OK;
}

static size_t links_in(const pare_cert *c)
{
    return c->nchain ? c->nchain : 1;
}

pare_status pare_cert_compose(pare_cert *out, pare_arena *a, const char *cert_path,
                              pare_cert *const *links, const char *const *link_paths, size_t n,
                              pare_err *err)
{
    if (n == 0)
        return pare_fail(err, PARE_ERR_USAGE,
                         "a chain needs at least one certificate; none is given");
    pare_cert c = {0};
    size_t total = 0;
    for (size_t i = 0; i < n; i++) total += links_in(links[i]);
    c.chain = pare_alloc(a, total, sizeof *c.chain);
    if (!c.chain) return pare_no_memory(err);
    pare_status st = PARE_OK;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; st == PARE_OK && k < links_in(links[i]); k++) {
            const pare_cert *const one = links[i]->nchain ? links[i]->chain[k] : links[i];
            st = copy_link(&c.chain[c.nchain++], a, one, link_paths[i], cert_path, err);
        }
    if (st == PARE_OK) st = cert_links_fit(c.chain, c.nchain, a, PARE_ERR_INPUT, err);
    if (st == PARE_OK) st = cert_add_up(&c, a, c.chain, c.nchain, err);
    if (st != PARE_OK) return st;
    c.seed = c.chain[0]->seed;
    c.input = c.chain[0]->input;
    c.output = c.chain[c.nchain - 1]->output;
    c.data = c.chain[0]->data;
    /* The headline of a chain is all it says of its inputs. */
    c.data.fitted = c.data.heldout = (pare_input_hashes){0};
    c.data.candidates = 0;
    *out = c;
    return PARE_OK;
}
