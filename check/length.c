/* length.c - certificates of length plans. The run itself is pare's own program: from the numbers of
 * one run, which `pare verify --unpack` writes, this program checks that it equals exact attention. */
#include "check.h"

#include <math.h>
#include <string.h>

enum { BITS = 128 };

static void check_file(job *j, const char *what, const char *folder, const cJSON *o)
{
    char hex[65];
    bytes file;
    const char *const claimed = get_hash(j, o, what, "sha256");
    const char *const path = beside(j, folder, get_text(j, o, what, "path"));
    if (j->t.code) return;
    if (!j->o->read && !file_exists(path)) {
        state(j, NOT_CHECKED, what, "%s is not there", path);
        return;
    }
    if (!read_file(j, path, &file)) return;
    sha256_of(hex, file.v, file.n);
    const bool same = strcmp(hex, claimed) == 0;
    state(j, same ? CONFIRMED : REFUTED, words(j, "%s.sha256", what),
          same ? "%s is the certificate's file" : "%s is not the certificate's file", path);
}

/* n x d numbers of a member as balls of radius 0. */
static bool member_balls(job *j, const npz *z, const char *name, size_t n, size_t d, balls *out)
{
    const array *const a = npz_find(z, name);
    if (!a || a->ndim != 2 || a->shape[0] != n || a->shape[1] != d)
        return fail(j, UNREADABLE, "attention.npz: %s is missing or of another shape", name);
    if (!balls_new(j, out, n, d)) return false;
    for (size_t i = 0; i < n * d; i++) arb_set_d(out->v + i, array_number(a, i));
    return true;
}

/* |y - exact| of one head on the rows of the certificate, into `most`. */
static bool head_error(job *j, const model *m, const input *in, const npz *z, const array *rows,
                       size_t layer_number, size_t number, const head *at, arb_t most)
{
    static const char letters[4][2] = {"q", "k", "v", "y"};
    const size_t n = in->tokens;
    const array *const scale = npz_find(z, words(j, "%zu.%zu.scale", layer_number, number));
    uint32_t *const keys = take(j, n, sizeof *keys);
    balls part[4] = {{0}};
    bool good = keys && scale && scale->count == 1;
    if (!good) return fail(j, UNREADABLE, "attention.npz: a scale is missing");
    for (size_t i = 0; good && i < 4; i++)
        good = member_balls(j, z, words(j, "%zu.%zu.%s", layer_number, number, letters[i]), n,
                            i < 2 ? at->dk : at->dv, &part[i]);
    const head h = {.dk = at->dk, .dv = at->dv, .scale = good ? array_number(scale, 0) : 0};
    balls exact = {0};
    arb_t apart;
    arb_init(apart);
    for (size_t r = 0; good && r < rows->count; r++) {
        const int64_t i = array_integer(rows, r);
        if (i < 0 || (uint64_t)i >= n)
            good = fail(j, UNREADABLE, "attention.npz: rows out of range");
        if (!good || !balls_new(j, &exact, 1, at->dv)) break;
        const size_t count = visible(m, in, (size_t)i, keys);
        attend_row(exact.v, &h, row_of(&part[0], (size_t)i), &part[1], &part[2], keys, count, BITS);
        for (size_t c = 0; c < at->dv; c++) {
            arb_sub(apart, exact.v + c, row_of(&part[3], (size_t)i) + c, BITS);
            arb_abs(apart, apart);
            arb_max(most, most, apart, BITS);
        }
        balls_free(&exact);
    }
    arb_clear(apart);
    for (size_t i = 0; i < 4; i++) balls_free(&part[i]);
    return good;
}

static void check_attention(job *j, model *m, double proven, double measured)
{
    const char *const folder = j->o->unpacked;
    const data_claim one = {.count = 1};
    graph complete;
    inputs set;
    bytes file;
    npz z;
    if (m->positions != POS_LEARNED) m->context = 0; /* plans may be longer than the context */
    if (!load_unpacked(j, m, folder, &one, &set) ||
        !read_file(j, words(j, "%s/attention.npz", folder), &file) ||
        !read_npz(j, "attention.npz", file, &z))
        return;
    input *const in = &set.list[0];
    if (m->pattern == GRAPH && !complete_graph(j, m, in->edges, &complete)) return;
    in->complete = &complete;
    const array *const rows = npz_find(&z, "rows");
    if (!rows || !is_integer(rows)) {
        fail(j, UNREADABLE, "attention.npz: no rows");
        return;
    }
    arb_t most, bound;
    arb_init(most);
    arb_init(bound);
    size_t heads = 0;
    for (size_t l = 0; l < m->nlayers && !j->t.code; l++)
        for (size_t h = 0; h < m->layers[l].attn.nheads && !j->t.code; h++, heads++)
            head_error(j, m, in, &z, rows, l, h, &m->layers[l].attn.heads[h], most);
    arb_set_d(bound, proven);
    const bool yes = isinf(proven) || arb_le(most, bound),
               no = !isinf(proven) && arb_gt(most, bound);
    state(j,
          yes  ? CONFIRMED
          : no ? REFUTED
               : NOT_REFUTED,
          words(j, "proven %.9g", proven),
          "the run is %.9g from exact attention on %zu rows of %zu heads",
          arf_get_d(arb_midref(most), ARF_RND_NEAR), rows->count, heads);
    const bool seen = arf_get_d(arb_midref(most), ARF_RND_NEAR) <= 4 * measured;
    state(j, seen ? CONFIRMED : REFUTED, words(j, "measured %.9g", measured),
          "of another run at most 4 times as much is allowed");
    arb_clear(most);
    arb_clear(bound);
}

bool check_length(job *j, const char *folder, const cJSON *root)
{
    static const char *const keys[] = {"pare_length",    "seed", "input",   "plan",   "data",
                                       "tokens",         "mode", "length",  "norm",   "domain",
                                       "rows_of_a_head", "run",  "apriori", "proven", "measured",
                                       "tolerance",      NULL};
    model *const m = take(j, 1, sizeof *m);
    bytes file;
    if (!m || !only_keys(j, root, "certificate", keys)) return false;
    if (get_count(j, root, "certificate", "pare_length") != 2)
        return fail(j, UNREADABLE, "certificate: this program reads schema 2 only");
    const cJSON *const o = get(j, root, "certificate", "input");
    const double proven = get_number(j, root, "certificate", "proven");
    const double measured = get_number(j, root, "certificate", "measured");
    const char *const architecture = get_hash(j, o, "input", "architecture");
    const char *const path = beside(j, folder, get_text(j, o, "input", "path"));
    if (j->t.code) return false;
    check_file(j, "plan", folder, get(j, root, "certificate", "plan"));
    if (cJSON_IsObject(find(root, "data"))) check_file(j, "data", folder, find(root, "data"));
    if (!j->o->unpacked) check_file(j, "input", folder, o);
    const char *const at = j->o->unpacked ? words(j, "%s/input.safetensors", j->o->unpacked) : path;
    if (!read_file(j, at, &file) || !read_model(j, at, file, m)) return false;
    const bool same = strcmp(m->architecture, architecture) == 0;
    state(j, same ? CONFIRMED : REFUTED, "input.architecture",
          "the canonical architecture has %s hash", same ? "the certificate's" : "another");
    state(j, measured <= proven ? CONFIRMED : REFUTED, "measured and proven",
          "%.9g was measured, %.9g proven", measured, proven);
    state(j, NOT_CHECKED, "run", "calls, rounds and lmax are of pare's own run");
    state(j, NOT_CHECKED, "apriori", "it is about every run of the plan");
    if (j->o->unpacked)
        check_attention(j, m, proven, measured);
    else
        state(j, NOT_CHECKED, words(j, "proven %.9g", proven),
              "it needs the numbers of a run: pare verify CERT --unpack DIR, then --unpacked DIR");
    return j->t.code == 0;
}
