/* file_ref.c - what a certificate speaks about: which bytes, which function, which inputs. */
#include "base/support.h"
#include "prove.h"
#include "model/inputs.h"
#include "model/model_facts.h"
#include "model/shared_rows.h"
#include "cert_internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- tensors ------------------------------------------------------------------------------- */

typedef struct collector {
    pare_arena *a;
    pare_named_hash *list; /* NULL in the first walk, which only counts */
    size_t n;
} collector;

static pare_status collect_bytes(collector *c, const char *name, const void *data, size_t bytes,
                                 pare_err *err)
{
    if (!c->list) return c->n++, PARE_OK;
    pare_named_hash *const h = &c->list[c->n++];
    h->name = pare_strdup(c->a, name);
    if (!h->name) return pare_no_memory(err);
    return pare_sha256_of(h->sha256, data, bytes, err);
}

static pare_status collect(void *self, const char *name, pare_weight *w, bool vector, pare_err *err)
{
    collector *const c = self;
    (void)vector;
    if (!pare_has(w)) return PARE_OK;
    /* No overflow: the weight is in memory. */
    return collect_bytes(c, name, w->data, w->rows * w->cols * pare_dtype_size(w->dtype), err);
}

static pare_status collect_all(collector *c, const pare_model *m, pare_err *err)
{
    c->n = 0;
    /* The visitor hands out pointers one may write through; this one only reads. */
    pare_status st = pare_model_each_weight((pare_model *)m, collect, c, err);
    if (!st && m->embedding.rows) {
        const uint8_t *const bits = pare_shared_bits(c->a, &m->embedding);
        st = bits ? collect_bytes(c, PARE_SHARED_TENSOR, bits, pare_shared_bytes(&m->embedding), err)
                  : pare_no_memory(err);
    }
    if (st != PARE_OK || !m->vocab) return st;
    return collect_bytes(c, "vocab", m->vocab, m->vocab_bytes, err);
}

pare_status cert_tensor_hashes(pare_named_hash **out, size_t *n, pare_arena *a, const pare_model *m,
                               pare_err *err)
{
    collector c = {a, NULL, 0};
    pare_status st = collect_all(&c, m, err);
    if (st != PARE_OK) return st;
    c.list = pare_alloc(a, c.n ? c.n : 1, sizeof *c.list);
    if (!c.list) return pare_no_memory(err);
    st = collect_all(&c, m, err);
    *out = c.list;
    *n = c.n;
    return st;
}

/* ---- models -------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const pare_named_hash *)a)->name, ((const pare_named_hash *)b)->name);
}

/* Every file that was read, by its name as seen from the model. */
static pare_status list_files(pare_file_ref *out, pare_arena *a, const char *path,
                              const pare_files *files, pare_err *err)
{
    const char *const root = pare_is_dir(path) ? pare_sprintf(a, "%s/x", path) : path;
    out->nfiles = pare_files_count(files);
    out->files = pare_alloc(a, out->nfiles ? out->nfiles : 1, sizeof *out->files);
    if (!root || !out->files) return pare_no_memory(err);
    for (size_t i = 0; i < out->nfiles; i++) {
        out->files[i].name = pare_path_relative(a, root, pare_files_path(files, i));
        if (!out->files[i].name) return pare_no_memory(err);
        memcpy(out->files[i].sha256, pare_files_sha256(files, i), PARE_SHA256_HEX);
    }
    qsort(out->files, out->nfiles, sizeof *out->files, by_name);
    return pare_files_identity(out->sha256, files, path, err);
}

pare_status pare_file_ref_make(pare_file_ref *out, pare_arena *a, const char *cert_path,
                               const char *path, const pare_files *files, const pare_model *m,
                               pare_err *err)
{
    *out = (pare_file_ref){.read_as = m->read_as};
    out->path = pare_path_relative(a, cert_path, path);
    if (!out->path) return pare_no_memory(err);
    pare_status st = list_files(out, a, path, files, err);
    if (st == PARE_OK) st = pare_architecture_sha256(out->architecture, m, err);
    if (st == PARE_OK) st = cert_tensor_hashes(&out->tensors, &out->ntensors, a, m, err);
    return st;
}

/* ---- inputs -------------------------------------------------------------------------------- */

pare_status pare_data_ref_make(pare_data_ref *out, pare_arena *a, const char *cert_path,
                               const char *path, const char *sha256, size_t split, size_t tokens,
                               const pare_inputs *set, pare_err *err)
{
    *out = (pare_data_ref){.kind = path ? "file" : "random", .count = set->n};
    if (path) {
        out->split = set->n > 0 && set->in[0].graph ? split : 0; /* nothing else has one */
        size_t texts;
        out->path = pare_data_is_self(path, &texts) ? pare_strdup(a, path)
                                                    : pare_path_relative(a, cert_path, path);
        if (!out->path) return pare_no_memory(err);
        memcpy(out->sha256, sha256, PARE_SHA256_HEX);
    } else {
        out->tokens = tokens;
    }
    return pare_inputs_sha256(out->inputs_sha256, set, err);
}

static int by_hash(const void *a, const void *b)
{
    return strcmp(a, b);
}

pare_status pare_input_hashes_make(pare_input_hashes *out, pare_arena *a, const pare_inputs *set,
                                   size_t tokens, pare_err *err)
{
    pare_status st = PARE_OK;
    size_t all = 0;
    for (size_t i = 0; i < set->n; i++) all += set->in[i].batch;
    *out = (pare_input_hashes){.tokens = tokens};
    out->sha256 = pare_alloc(a, all ? all : 1, sizeof *out->sha256);
    if (!out->sha256) return pare_no_memory(err);
    for (size_t i = 0; i < set->n; i++)
        for (size_t b = 0; st == PARE_OK && b < set->in[i].batch; b++) {
            pare_input one = pare_input_sequence(&set->in[i], b);
            if (tokens > 0 && tokens < one.tokens && !one.graph) one.tokens = tokens;
            st = pare_inputs_sha256(out->sha256[out->n++], &(pare_inputs){1, &one}, err);
        }
    qsort(out->sha256, out->n, sizeof *out->sha256, by_hash);
    return st;
}

bool pare_inputs_meet(const pare_input_hashes *a, const pare_input_hashes *b)
{
    for (size_t i = 0; i < a->n; i++)
        if (bsearch(a->sha256[i], b->sha256, b->n, sizeof *b->sha256, by_hash)) return true;
    return false;
}
