/* unpack_file.c - what a certificate is about, in plain files: models as numbers, inputs as arrays.
 *
 * A checker of another make need not know Hugging Face folders, tickets, tokenizers or expander
 * graphs: it reads these files and compares them with the hashes in the certificate (docs/format.md
 * "Unpacked certificates"). Edges that a model adds to a graph and the numbers of a length run have
 * no hash there; who checks by them trusts this step. unpacked.json comes last: a folder without it
 * is not whole. */
#include "verify_file.h"

#include "base/array.h"
#include "base/list.h"
#include "base/support.h"
#include "cert/prove.h"
#include "length/length_cert_file.h"
#include "model/inputs.h"
#include "model/model_file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define INDEX    "unpacked.json"
#define SCHEMA   1
#define SENTENCE "written from the files that the certificate names; proves nothing"

typedef struct made {
    const char *path;
    bool is_folder;
} made;

typedef struct unpacker {
    pare_arena *a;
    const char *folder;    /* of the whole */
    bool overwrite, begun; /* begun: the folder is there */
    const char *cert_path;
    char cert_sha256[PARE_SHA256_HEX];
    size_t nmade, capacity;
    made *made; /* what a failure has to remove again */
    size_t inputs;
} unpacker;

/* ---- files and folders ----------------------------------------------------------------------- */

/* Notes that `path` is about to appear; NULL: memory is out. */
static const char *note(unpacker *u, const char *path, bool is_folder)
{
    made *const list = list_grow(u->a, u->made, u->nmade, &u->capacity, sizeof *u->made);
    if (!list || !path) return NULL;
    u->made = list;
    list[u->nmade++] = (made){path, is_folder};
    return path;
}

static void remove_made(const unpacker *u)
{
    for (size_t i = u->nmade; i-- > 0;)
        if (u->made[i].is_folder)
            rmdir(u->made[i].path);
        else
            unlink(u->made[i].path);
}

static pare_status check_folder(const char *folder, bool overwrite, pare_err *err)
{
    if (!*folder) return pare_fail(err, PARE_ERR_IO, "the name of the folder is empty");
    if (overwrite || !pare_file_exists(folder)) return PARE_OK;
    return pare_fail(err, PARE_ERR_IO, "%s: exists, and may not be overwritten", folder);
}

/* A new folder, or with `overwrite` one that an unpacking has made. Its index is removed: it will
 * be whole again when the new one is written. */
static pare_status make_folder(unpacker *u, const char *folder, pare_err *err)
{
    if (mkdir(folder, 0777) == 0)
        return note(u, folder, true) ? PARE_OK : (rmdir(folder), pare_no_memory(err));
    if (errno != EEXIST) return pare_fail(err, PARE_ERR_IO, "%s: %s", folder, strerror(errno));
    const pare_status st = check_folder(folder, u->overwrite, err);
    if (st) return st;
    const char *const index = pare_sprintf(u->a, "%s/" INDEX, folder);
    if (!index) return pare_no_memory(err);
    if (unlink(index) == 0) return PARE_OK;
    return pare_fail(err, PARE_ERR_IO, "%s: exists, and was not made by unpacking; give a new name",
                     folder);
}

typedef struct written {
    const char *name; /* NULL: there is none */
    char sha256[PARE_SHA256_HEX];
} written;

static pare_status write_model(unpacker *u, written *out, const char *folder, const char *name,
                               const pare_model *m, pare_err *err)
{
    const char *const path = note(u, pare_sprintf(u->a, "%s/%s", folder, name), false);
    if (!path) return pare_no_memory(err);
    out->name = name;
    return model_file_write_as_held(m, path, u->overwrite, out->sha256, err);
}

/* ---- inputs ---------------------------------------------------------------------------------- */

enum { MOST_ARRAYS = 9 };
typedef struct arrays {
    size_t n;
    const char *name[MOST_ARRAYS];
    pare_array array[MOST_ARRAYS];
} arrays;

static void add_array(arrays *to, const char *name, pare_dtype t, const void *data, size_t rows,
                      size_t cols)
{
    PARE_ASSERT(to->n < MOST_ARRAYS);
    to->name[to->n] = name;
    to->array[to->n++] =
        (pare_array){.dtype = t, .ndim = cols > 0 ? 2 : 1, .shape = {rows, cols}, .data = data};
}

static size_t rows_of(const pare_input *in)
{
    return in->batch * in->tokens;
}

static size_t count_rows(const pare_inputs *set)
{
    size_t rows = 0;
    for (size_t i = 0; i < set->n; i++) rows += rows_of(&set->in[i]);
    return rows;
}

/* offsets, continues, and ids or vectors. */
static pare_status add_numbers(arrays *to, pare_arena *a, const pare_inputs *set, pare_err *err)
{
    const bool ids = set->in[0].ids != NULL;
    const size_t rows = count_rows(set), width = ids ? 1 : set->in[0].width;
    int64_t *const offsets = pare_alloc(a, set->n + 1, sizeof *offsets);
    uint8_t *const continues = pare_alloc(a, set->n, sizeof *continues);
    uint8_t *const all = pare_alloc(a, rows * width, sizeof(double)); /* ids are as long */
    if (!offsets || !continues || !all) return pare_no_memory(err);
    size_t at = 0;
    for (size_t i = 0; i < set->n; i++) {
        const pare_input *const in = &set->in[i];
        const size_t bytes = rows_of(in) * width * sizeof(double);
        memcpy(all + at * width * sizeof(double), ids ? (const void *)in->ids : in->x, bytes);
        at += rows_of(in);
        offsets[i + 1] = (int64_t)at;
        continues[i] = in->continues;
    }
    add_array(to, "offsets", PARE_I64, offsets, set->n + 1, 0);
    add_array(to, "continues", PARE_U8, continues, set->n, 0);
    if (ids)
        add_array(to, "ids", PARE_I64, all, rows, 0);
    else
        add_array(to, "vectors", PARE_F64, all, rows, width);
    return PARE_OK;
}

/* The rows of the graphs of all inputs one after the other; what `p` adds to them, unless NULL. */
static pare_status add_graphs(arrays *to, const char *const names[2], pare_arena *a,
                              const pare_inputs *set, const pare_pattern *p, pare_err *err)
{
    pare_graph *const g = pare_alloc(a, set->n, sizeof *g);
    int64_t *const offsets = pare_alloc(a, count_rows(set) + 1, sizeof *offsets);
    if (!g || !offsets) return pare_no_memory(err);
    size_t row = 0, count = 0;
    pare_status st = PARE_OK;
    for (size_t i = 0; i < set->n && !st; i++) {
        g[i] = *set->in[i].graph;
        if (p) st = pare_graph_complete(&g[i], a, set->in[i].graph, p, err);
        for (size_t k = 0; k < g[i].n && !st; k++)
            offsets[++row] = (int64_t)(count + g[i].ptr[k + 1]);
        if (!st) count += g[i].ptr[g[i].n];
    }
    uint32_t *const idx = st ? NULL : pare_alloc(a, count + 1, sizeof *idx);
    if (!idx) return st ? st : pare_no_memory(err);
    for (size_t i = 0, at = 0; i < set->n; at += g[i].ptr[g[i].n], i++)
        if (g[i].ptr[g[i].n] > 0) memcpy(idx + at, g[i].idx, g[i].ptr[g[i].n] * sizeof *idx);
    add_array(to, names[0], PARE_I64, offsets, row + 1, 0);
    add_array(to, names[1], PARE_U32, idx, count, 0);
    return PARE_OK;
}

static bool same_edges(const pare_pattern *p, const pare_pattern *q)
{
    return p->self_loops == q->self_loops && p->expander_degree == q->expander_degree &&
           p->expander_seed == q->expander_seed;
}

static pare_status add_all_graphs(arrays *to, pare_arena *a, const pare_inputs *set,
                                  const pare_model *f, const pare_model *g, pare_err *err)
{
    static const char *const data[] = {"neighbors_offsets", "neighbors"},
                             *const keys[] = {"keys_offsets", "keys"},
                             *const output[] = {"output_keys_offsets", "output_keys"};
    for (size_t i = 0; i < set->n; i++)
        if (!set->in[i].graph) return PARE_OK;
    pare_status st = add_graphs(to, data, a, set, NULL, err);
    if (!st) st = add_graphs(to, keys, a, set, &f->pattern, err);
    if (!st && g && !same_edges(&f->pattern, &g->pattern))
        st = add_graphs(to, output, a, set, &g->pattern, err);
    return st;
}

static pare_status add_targets(arrays *to, pare_arena *a, const pare_inputs *set,
                               const pare_model *f, pare_err *err)
{
    size_t rows = 0;
    for (size_t i = 0; i < set->n; i++) {
        if (!set->in[i].target) return PARE_OK;
        rows += pare_output_rows(f, &set->in[i]);
    }
    int64_t *const all = pare_alloc(a, rows + 1, sizeof *all);
    if (!all) return pare_no_memory(err);
    for (size_t i = 0, at = 0; i < set->n; i++) {
        const size_t n = pare_output_rows(f, &set->in[i]);
        memcpy(all + at, set->in[i].target, n * sizeof *all);
        at += n;
    }
    add_array(to, "targets", PARE_I64, all, rows, 0);
    return PARE_OK;
}

static pare_status write_arrays(unpacker *u, written *out, const char *folder, const char *name,
                                size_t n, const char *const *names, const pare_array *array,
                                pare_err *err)
{
    const char *const path = note(u, pare_sprintf(u->a, "%s/%s", folder, name), false);
    if (!path) return pare_no_memory(err);
    out->name = name;
    const pare_status st = pare_npz_write(path, n, names, array, false, u->overwrite, err);
    return st ? st : pare_sha256_file(out->sha256, path, err);
}

/* g NULL: there is one model only. */
static pare_status write_inputs(unpacker *u, written *out, const char *folder,
                                const pare_inputs *set, const pare_model *f, const pare_model *g,
                                pare_err *err)
{
    arrays all = {0};
    pare_arena *const a = pare_arena_new();
    if (!a) return pare_no_memory(err);
    pare_status st = add_numbers(&all, a, set, err);
    if (!st) st = add_all_graphs(&all, a, set, f, g, err);
    if (!st) st = add_targets(&all, a, set, f, err);
    if (!st) st = write_arrays(u, out, folder, "inputs.npz", all.n, all.name, all.array, err);
    pare_arena_free(a);
    return st;
}

/* ---- the index ------------------------------------------------------------------------------- */

typedef struct parts {
    const char *kind;
    written input, output, inputs, attention;
    char inputs_sha256[PARE_SHA256_HEX];
    size_t count, links;
} parts;

static cJSON *add_file(cJSON *to, const char *key, const written *f)
{
    cJSON *const o = pare_json_add_object(to, key);
    return o && pare_json_add_string(o, "path", f->name) &&
                   pare_json_add_string(o, "sha256", f->sha256)
               ? o
               : NULL;
}

static bool add_links(cJSON *to, size_t n)
{
    cJSON *const list = pare_json_add_array(to, "links");
    bool ok = list != NULL;
    for (size_t i = 1; i <= n && ok; i++) {
        char name[24];
        snprintf(name, sizeof name, "%zu", i);
        ok = pare_json_add_string(list, NULL, name);
    }
    return ok;
}

static bool add_parts(cJSON *root, const unpacker *u, const char *cert, const parts *p)
{
    bool ok = pare_json_add_size(root, "pare_unpacked", SCHEMA) &&
              pare_json_add_string(root, "kind", p->kind);
    cJSON *o = ok ? pare_json_add_object(root, "certificate") : NULL;
    ok = o && pare_json_add_string(o, "path", cert) &&
         pare_json_add_string(o, "sha256", u->cert_sha256) && add_file(root, "input", &p->input) &&
         (!p->output.name || add_file(root, "output", &p->output));
    o = ok ? add_file(root, "inputs", &p->inputs) : NULL;
    return o && pare_json_add_string(o, "inputs_sha256", p->inputs_sha256) &&
           pare_json_add_size(o, "count", p->count) &&
           (!p->attention.name || add_file(root, "attention", &p->attention)) &&
           (!p->links || add_links(root, p->links)) &&
           pare_json_add_string(root, "sentence", SENTENCE);
}

static pare_status write_index(unpacker *u, const char *folder, const parts *p, pare_err *err)
{
    const char *const path = note(u, pare_sprintf(u->a, "%s/" INDEX, folder), false);
    const char *const cert = path ? pare_path_relative(u->a, path, u->cert_path) : NULL;
    cJSON *const root = cJSON_CreateObject();
    pare_out *o = NULL;
    char *text = NULL;
    size_t n = 0;
    pare_status st = cert && root && add_parts(root, u, cert, p) ? PARE_OK : pare_no_memory(err);
    if (!st) st = pare_json_print(&text, &n, u->a, root, 2, err);
    cJSON_Delete(root);
    if (!st) st = pare_out_open(&o, path, u->overwrite, err);
    if (st) return st;
    st = pare_out_write(o, text, n, err);
    if (!st) st = pare_out_write(o, "\n", 1, err);
    if (!st) return pare_out_commit(o, err);
    pare_out_abort(o);
    return st;
}

/* ---- certificates ---------------------------------------------------------------------------- */

/* pare_cert_files_fn: link i of a chain into folder/i, then its ends, or a cut, into the folder. */
static pare_status unpack_cut(void *self, size_t link, const pare_cert *c, const pare_model *f,
                              const pare_model *g, const pare_inputs *set, pare_err *err)
{
    unpacker *const u = self;
    parts p = {.kind = c->nchain ? "chain" : "cut", .count = set->n, .links = c->nchain};
    const char *const folder = link ? pare_sprintf(u->a, "%s/%zu", u->folder, link) : u->folder;
    if (!folder) return pare_no_memory(err);
    memcpy(p.inputs_sha256, c->data.inputs_sha256, PARE_SHA256_HEX);
    u->inputs = set->n;
    pare_status st = u->begun ? PARE_OK : make_folder(u, u->folder, err);
    u->begun = true;
    if (!st && link) st = make_folder(u, folder, err);
    if (!st) st = write_model(u, &p.input, folder, "input.safetensors", f, err);
    if (!st) st = write_model(u, &p.output, folder, "output.safetensors", g, err);
    if (!st) st = write_inputs(u, &p.inputs, folder, set, f, g, err);
    return st ? st : write_index(u, folder, &p, err);
}

/* Which rows of a head are compared, and the numbers of all heads. */
static pare_status write_attention(unpacker *u, written *out, const char *folder,
                                   const length_replay *r, pare_err *err)
{
    enum { EACH = 5 };
    static const char *const letters[EACH] = {"q", "k", "v", "y", "scale"};
    const size_t n = 1 + EACH * r->nheads, tokens = r->in.in.tokens;
    const size_t rows = r->rows && r->rows < tokens ? r->rows : tokens;
    const char **const names = pare_alloc(u->a, n, sizeof *names);
    pare_array *const array = pare_alloc(u->a, n, sizeof *array);
    int64_t *const which = pare_alloc(u->a, rows, sizeof *which);
    if (!names || !array || !which) return pare_no_memory(err);
    for (size_t i = 0; i < rows; i++) which[i] = (int64_t)(i * tokens / rows);
    names[0] = "rows";
    array[0] = (pare_array){.dtype = PARE_I64, .ndim = 1, .shape = {rows}, .data = which};
    for (size_t i = 0; i < r->nheads; i++) {
        const length_head *const h = &r->heads[i];
        const void *const data[EACH] = {h->q, h->k, h->v, h->y, &h->scale};
        for (size_t e = 0; e < EACH; e++) {
            const size_t at = 1 + EACH * i + e;
            names[at] = pare_sprintf(u->a, "%zu.%zu.%s", h->block, h->head, letters[e]);
            if (!names[at]) return pare_no_memory(err);
            array[at] = (pare_array){.dtype = r->dtype,
                                     .ndim = 2,
                                     .shape = {h->n, e < 2 ? h->dk : h->dv},
                                     .data = data[e]};
        }
        array[EACH * i + EACH] =
            (pare_array){.dtype = PARE_F64, .ndim = 1, .shape = {1}, .data = &h->scale};
    }
    return write_arrays(u, out, folder, "attention.npz", n, names, array, err);
}

static pare_status unpack_length(unpacker *u, const cJSON *json, const pare_verify_file_opts *o,
                                 pare_err *err)
{
    length_replay r;
    parts p = {.kind = "length", .count = 1};
    pare_status st = pare_length_cert_replay(
        &r, u->a, u->cert_path, json,
        &(pare_length_verify_opts){o->input, o->output, o->data, NULL}, o->exec, err);
    const pare_inputs set = {1, &r.in.in};
    u->inputs = 1;
    if (!st) st = pare_inputs_sha256(p.inputs_sha256, &set, err);
    if (!st) st = make_folder(u, u->folder, err);
    if (!st) st = write_model(u, &p.input, u->folder, "input.safetensors", r.m, err);
    if (!st) st = write_inputs(u, &p.inputs, u->folder, &set, r.m, NULL, err);
    if (!st) st = write_attention(u, &p.attention, u->folder, &r, err);
    if (!st) st = write_index(u, u->folder, &p, err);
    pare_model_free(r.m);
    return st;
}

pare_status pare_unpack_file(pare_unpacked *out, pare_arena *a, const char *path,
                             const char *folder, bool overwrite, const pare_verify_file_opts *opts,
                             pare_err *err)
{
    const pare_verify_file_opts none = {0}, *const o = opts ? opts : &none;
    unpacker u = {.a = a, .folder = folder, .overwrite = overwrite};
    cJSON *json = NULL;
    *out = (pare_unpacked){0};
    pare_status st = check_folder(folder, overwrite, err);
    if (st) return st;
    st = pare_certificate_open(&json, &out->path, u.cert_sha256, a, path, err);
    u.cert_path = out->path;
    if (!st && pare_is_length_cert(json)) {
        out->is_length = true;
        st = unpack_length(&u, json, o, err);
    } else if (!st) {
        pare_cert *c = NULL;
        const pare_verify_opts v = {.input = o->input,
                                    .output = o->output,
                                    .data = o->data,
                                    .load = pare_certificate_inputs,
                                    .exec = o->exec};
        st = pare_certificate_parse(&c, a, json, out->path, o, err);
        if (!st) st = pare_cert_open_files(a, c, out->path, &v, unpack_cut, &u, err);
        out->links = c ? c->nchain : 0;
    }
    cJSON_Delete(json);
    if (st) remove_made(&u);
    out->inputs = u.inputs;
    return st == PARE_ERR_VERIFY ? st : pare_err_path(err, st, out->path);
}
