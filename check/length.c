/* length.c - certificates of length plans. The run itself is pare's own program: from the numbers of
 * one run, which `pare verify --unpack` writes, this program checks that it equals exact attention. */
#include "check.h"

#include <math.h>
#include <string.h>

enum { BITS = 128 };

static void check_file(job *j, const char *what, const char *folder, const cJSON *o)
{
    bytes file;
    const char *const claimed = get_hash(j, o, "sha256");
    const char *const path = beside(j, folder, get_text(j, o, "path"));
    if (j->t.code) return;
    if (!j->o->read && !file_exists(path))
        state(j, NOT_CHECKED, what, "%s is not there", path);
    else if (read_file(j, path, &file))
        check_hash(j, words(j, "%s.sha256", what), path, file, claimed);
}

/* n x d numbers of a member as balls of radius 0. */
static balls member_balls(evaluation *r, const npz *z, const char *name, size_t n, size_t d)
{
    const array *const a = npz_find(z, name);
    if (!a || a->ndim != 2 || a->shape[0] != n || a->shape[1] != d)
        fail(r->j, UNREADABLE, "attention.npz: %s is missing or of another shape", name);
    const balls out = new_balls(r, n, d);
    for (size_t i = 0; i < out.n * out.d; i++) arb_set_d(out.v + i, array_number(a, i));
    return out;
}

/* |y - exact| of one head on the rows of the certificate, into `most`. */
static void head_error(evaluation *r, const npz *z, const array *rows, const char *name,
                       const head *at, arb_t most)
{
    job *const j = r->j;
    const size_t n = r->in.tokens;
    const array *const scale = npz_find(z, words(j, "%s.scale", name));
    const balls q = member_balls(r, z, words(j, "%s.q", name), n, at->dk);
    const balls k = member_balls(r, z, words(j, "%s.k", name), n, at->dk);
    const balls v = member_balls(r, z, words(j, "%s.v", name), n, at->dv);
    const balls y = member_balls(r, z, words(j, "%s.y", name), n, at->dv);
    const balls exact = new_balls(r, 1, at->dv);
    uint32_t *const keys = take(j, n, sizeof *keys);
    if (!scale || scale->count != 1) fail(j, UNREADABLE, "attention.npz: a scale is missing");
    if (j->t.code) return;
    const head h = {.dk = at->dk, .dv = at->dv, .scale = array_number(scale, 0)};
    for (size_t i = 0; i < rows->count && !j->t.code; i++) {
        const uint64_t row = (uint64_t)array_integer(rows, i);
        if (row >= n) {
            fail(j, UNREADABLE, "attention.npz: rows out of range");
            return;
        }
        _arb_vec_zero(exact.v, (slong)at->dv); /* no keys: it stays zero */
        attend(exact.v, &h, row_of(q, row), k, v, keys, visible(r, row, keys), r->prec);
        for (size_t c = 0; c < at->dv; c++) {
            arb_sub(exact.v + c, exact.v + c, row_of(y, row) + c, r->prec);
            arb_abs(exact.v + c, exact.v + c);
            arb_max(most, most, exact.v + c, r->prec);
        }
    }
}

static void check_attention(job *j, model *m, double proven, double measured)
{
    const char *const folder = j->o->unpacked;
    inputs set;
    bytes file;
    npz z;
    if (m->positions != POS_LEARNED) m->context = 0; /* plans may be longer than the context */
    if (!load_unpacked(j, m, folder, 1, &set) ||
        !read_file(j, words(j, "%s/attention.npz", folder), &file) ||
        !read_npz(j, "attention.npz", file, &z))
        return;
    evaluation r = {j, m, set.list[0], BITS, NULL};
    if (m->pattern == GRAPH) r.in.complete = complete_graph(j, m, r.in.edges);
    const array *const rows = npz_find(&z, "rows");
    if (!rows || !is_integer(rows)) fail(j, UNREADABLE, "attention.npz: no rows");
    arb_ptr most = _arb_vec_init(2), bound = most + 1;
    size_t heads = 0;
    for (size_t l = 0; l < m->nlayers; l++)
        for (size_t h = 0; h < m->layers[l].attn.nheads && !j->t.code; h++, heads++) {
            head_error(&r, &z, rows, words(j, "%zu.%zu", l, h), &m->layers[l].attn.heads[h], most);
            drop_since(&r, NULL, (balls){0});
        }
    arb_set_d(bound, proven);
    const bool yes = isinf(proven) || arb_le(most, bound), no = !yes && arb_gt(most, bound);
    if (!j->t.code)
        state(j,
              yes  ? CONFIRMED
              : no ? REFUTED
                   : NOT_REFUTED,
              words(j, "proven %.9g", proven),
              "the run is %.9g from exact attention on %zu rows of %zu heads", middle(most),
              rows->count, heads);
    state(j, middle(most) <= 4 * measured ? CONFIRMED : REFUTED,
          words(j, "measured %.9g", measured), "of another run at most 4 times as much is allowed");
    _arb_vec_clear(most, 2);
}

void check_length(job *j, const char *folder, const cJSON *root)
{
    model *const m = take(j, 1, sizeof *m);
    bytes file;
    if (get_count(j, root, "pare_length") != 2)
        fail(j, UNREADABLE, "certificate: this program reads schema 2 only");
    const cJSON *const o = get(j, root, "input");
    const double proven = get_number(j, root, "proven");
    const double measured = get_number(j, root, "measured");
    const char *const architecture = get_hash(j, o, "architecture");
    const char *const path = beside(j, folder, get_text(j, o, "path"));
    const char *const unpacked = j->o->unpacked;
    check_file(j, "plan", folder, get(j, root, "plan"));
    if (cJSON_IsObject(find(root, "data"))) check_file(j, "data", folder, find(root, "data"));
    if (!unpacked) check_file(j, "input", folder, o);
    const char *const at = unpacked ? words(j, "%s/input.safetensors", unpacked) : path;
    if (!read_file(j, at, &file) || !read_model(j, at, file, m)) return;
    check_architecture(j, "input", m, architecture);
    state(j, measured <= proven ? CONFIRMED : REFUTED, "measured and proven",
          "%.9g was measured, %.9g proven", measured, proven);
    state(j, NOT_CHECKED, "run", "calls, rounds and lmax are of pare's own run");
    state(j, NOT_CHECKED, "apriori", "it is about every run of the plan");
    if (unpacked)
        check_attention(j, m, proven, measured);
    else
        state(j, NOT_CHECKED, words(j, "proven %.9g", proven),
              "it needs the numbers of a run: pare verify CERT --unpack DIR, then --unpacked DIR");
}
