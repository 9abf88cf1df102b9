/* length.c - certificates of length plans. The run itself is pare's own program: from the numbers of
 * one run, which `pare verify --unpack` writes, this program checks that it equals exact attention. */
#include "check.h"

#include <math.h>

enum { BITS = 128 };

static void check_file(job *j, const char *what, const char *folder, const cJSON *o)
{
    const char *const path = beside(j, folder, get_text(j, o, "path"));
    if (j->o->read || file_exists(path))
        read_checked(j, what, path, o);
    else
        state(j, NOT_CHECKED, what, words(j, "%s is not there", path));
}

/* The member NAME.LETTER: n rows, of numbers that are exact balls. */
static balls member(job *j, const npz *z, const char *name, const char *letter, size_t n)
{
    const array *const a = npz_find(z, words(j, "%s.%s", name, letter));
    must(j, a && a->ndim == 2 && a->shape[0] == n,
         "attention.npz: %s.%s is missing or of another shape", name, letter);
    const balls out = new_balls(j, n, a->shape[1]);
    for (size_t i = 0; i < out.n * out.d; i++) arb_set_d(out.v + i, array_number(a, i));
    return out;
}

/* |y - exact| of one head on the rows of the certificate, into `most`. */
static void head_error(const evaluation *e, const npz *z, const array *rows, const char *name,
                       arb_t most)
{
    job *const j = e->j;
    chunk *const mark = j->memory;
    const size_t n = e->in->tokens;
    const array *const scale = npz_find(z, words(j, "%s.scale", name));
    must(j, scale && scale->count == 1, "attention.npz: a scale is missing");
    const head h = {member(j, z, name, "q", n), member(j, z, name, "k", n),
                    member(j, z, name, "v", n), array_number(scale, 0)};
    const balls y = member(j, z, name, "y", n), exact = new_balls(j, 1, y.d);
    uint32_t *const keys = take(j, n, sizeof *keys);
    must(j, h.q.d == h.k.d && h.v.d == y.d, "attention.npz: other widths");
    for (size_t i = 0; i < rows->count; i++) {
        const uint64_t row = (uint64_t)array_integer(rows, i);
        must(j, row < n, "attention.npz: rows out of range");
        attend(exact.v, &h, row, keys, visible(e, row, keys), e->prec);
        for (size_t c = 0; c < y.d; c++) {
            arb_sub(exact.v + c, exact.v + c, row_of(y, row) + c, e->prec);
            arb_abs(exact.v + c, exact.v + c);
            arb_max(most, most, exact.v + c, e->prec);
        }
    }
    release(j, mark, NULL);
}

static void check_attention(job *j, model *m, double proven, double measured)
{
    const char *const folder = j->o->unpacked;
    m->context = 0; /* plans may be longer */
    const inputs set = load_unpacked(j, m, folder, 1);
    const npz z = read_npz(j, "attention.npz", read_file(j, words(j, "%s/attention.npz", folder)));
    const evaluation e = begin_evaluation(j, m, set.list, BITS);
    const array *const rows = npz_find(&z, "rows");
    arb_ptr most = take_balls(j, 1);
    size_t heads = 0;
    must(j, rows && is_integer(rows), "attention.npz: no rows");
    for (size_t l = 0; l < count_blocks(m); l++) {
        const cJSON *const list = find(part_of(j, m, l, false).o, "heads");
        const size_t n = (size_t)cJSON_GetArraySize(list);
        for (size_t h = 0; h < n; h++, heads++)
            head_error(&e, &z, rows, words(j, "%zu.%zu", l, h), most);
    }
    const interval off = interval_of(most);
    state(j,
          off.high <= proven ? CONFIRMED
          : off.low > proven ? REFUTED
                             : NOT_REFUTED,
          words(j, "proven %.9g", proven),
          words(j, "the run is %.9g from exact attention on %zu rows of %zu heads", off.high,
                rows->count, heads));
    state(j, off.high <= 4 * measured ? CONFIRMED : REFUTED, words(j, "measured %.9g", measured),
          "of another run at most 4 times as much is allowed");
}

void check_length(job *j, const char *folder, const cJSON *root)
{
    const char *const unpacked = j->o->unpacked;
    const cJSON *const o = get(j, root, "input");
    const double proven = get_number(j, root, "proven"), seen = get_number(j, root, "measured");
    must(j, get_count(j, root, "pare_length") == 2, "certificate: is not of schema 2");
    check_file(j, "plan", folder, get(j, root, "plan"));
    if (cJSON_IsObject(find(root, "data"))) check_file(j, "data", folder, find(root, "data"));
    if (!unpacked) check_file(j, "input", folder, o);
    const char *const at = unpacked ? words(j, "%s/input.safetensors", unpacked)
                                    : beside(j, folder, get_text(j, o, "path"));
    model m = read_model(j, at, read_file(j, at));
    check_equal(j, "input.architecture", m.hash, get_text(j, o, "architecture"), at);
    state(j, seen <= proven ? CONFIRMED : REFUTED, "measured and proven",
          words(j, "%.9g was measured, %.9g proven", seen, proven));
    state(j, NOT_CHECKED, "run", "calls, rounds and lmax are of pare's own run");
    state(j, NOT_CHECKED, "apriori", "it is about every run of the plan");
    if (unpacked)
        check_attention(j, &m, proven, seen);
    else
        state(j, NOT_CHECKED, words(j, "proven %.9g", proven),
              "it needs the numbers of a run: pare verify CERT --unpack DIR, then --unpacked DIR");
}
