/* export_like.c - a cut of a Hugging Face folder as a folder of the same kind.
 *
 * Every tensor of the source goes out under its name, in its type and file: those of the blocks with
 * the numbers of the model, all others byte for byte (embedding and head must not have changed).
 * config.json keeps its keys but for the sizes that changed; tokenizers, pooling, cards and every
 * other small file are copied. At the end the folder is loaded, and must be the model that was
 * meant: the same architecture, and every weight to the precision it is stored in. What a family's
 * config cannot say is refused there. */
#include "base/array.h"
#include "base/support.h"
#include "export_hf.h"
#include "import_families.h"
#include "model/model_facts.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct like {
    const pare_model *m, *in;
    const char *folder; /* to be written */
    im_source s;        /* the source */
    pare_arena *arena;
    pare_status st;
    pare_err *err;
} like;

static void refuse(like *x, const char *why)
{
    if (!x->st)
        x->st = pare_fail(x->err, PARE_ERR_INPUT,
                          "a folder of this family cannot hold the result: %s", why);
}

static char *inside(like *x, const char *folder, const char *name)
{
    char *const path = x->st ? NULL : pare_sprintf(x->arena, "%s/%s", folder, name);
    if (!x->st && !path) x->st = pare_no_memory(x->err);
    return path;
}

/* ---- which weight a tensor of a block is --------------------------------------------------- */

typedef struct block_part {
    const char *rest; /* of the key, behind the number of the block */
    size_t at[3];     /* offsets of up to three weights in pare_block; 0 behind the last */
    size_t layer;     /* 1 + the layer of the FFN whose weight (at[0] 0) or bias (at[0] 1) it is */
    bool transposed;
    double absent;
} block_part;

#define ATTN(f) offsetof(pare_block, attn.f)
#define FFN(f)  offsetof(pare_block, ffn.f)
enum { LAYER_WEIGHT = 0, LAYER_BIAS = 1 };

/* clang-format off */
static const block_part parts[] = {
    /* BERT, RoBERTa */
    {"attention.self.query.weight", {ATTN(wq)}, 0, 0, 0}, {"attention.self.query.bias", {ATTN(bq)}, 0, 0, 0},
    {"attention.self.key.weight", {ATTN(wk)}, 0, 0, 0},   {"attention.self.key.bias", {ATTN(bk)}, 0, 0, 0},
    {"attention.self.value.weight", {ATTN(wv)}, 0, 0, 0}, {"attention.self.value.bias", {ATTN(bv)}, 0, 0, 0},
    {"attention.output.dense.weight", {ATTN(wo)}, 0, 0, 0}, {"attention.output.dense.bias", {ATTN(bo)}, 0, 0, 0},
    {"attention.output.LayerNorm.weight", {ATTN(out_norm.gain)}, 0, 0, 1}, {"attention.output.LayerNorm.bias", {ATTN(out_norm.bias)}, 0, 0, 0},
    {"attention.output.LayerNorm.gamma", {ATTN(out_norm.gain)}, 0, 0, 1}, {"attention.output.LayerNorm.beta", {ATTN(out_norm.bias)}, 0, 0, 0},
    {"intermediate.dense.weight", {LAYER_WEIGHT}, 1, 0, 0}, {"intermediate.dense.bias", {LAYER_BIAS}, 1, 0, 0},
    {"output.dense.weight", {LAYER_WEIGHT}, 2, 0, 0}, {"output.dense.bias", {LAYER_BIAS}, 2, 0, 0},
    {"output.LayerNorm.weight", {FFN(out_norm.gain)}, 0, 0, 1}, {"output.LayerNorm.bias", {FFN(out_norm.bias)}, 0, 0, 0},
    {"output.LayerNorm.gamma", {FFN(out_norm.gain)}, 0, 0, 1}, {"output.LayerNorm.beta", {FFN(out_norm.bias)}, 0, 0, 0},
    /* DistilBERT */
    {"attention.q_lin.weight", {ATTN(wq)}, 0, 0, 0}, {"attention.q_lin.bias", {ATTN(bq)}, 0, 0, 0},
    {"attention.k_lin.weight", {ATTN(wk)}, 0, 0, 0}, {"attention.k_lin.bias", {ATTN(bk)}, 0, 0, 0},
    {"attention.v_lin.weight", {ATTN(wv)}, 0, 0, 0}, {"attention.v_lin.bias", {ATTN(bv)}, 0, 0, 0},
    {"attention.out_lin.weight", {ATTN(wo)}, 0, 0, 0}, {"attention.out_lin.bias", {ATTN(bo)}, 0, 0, 0},
    {"sa_layer_norm.weight", {ATTN(out_norm.gain)}, 0, 0, 1}, {"sa_layer_norm.bias", {ATTN(out_norm.bias)}, 0, 0, 0},
    {"ffn.lin1.weight", {LAYER_WEIGHT}, 1, 0, 0}, {"ffn.lin1.bias", {LAYER_BIAS}, 1, 0, 0},
    {"ffn.lin2.weight", {LAYER_WEIGHT}, 2, 0, 0}, {"ffn.lin2.bias", {LAYER_BIAS}, 2, 0, 0},
    {"output_layer_norm.weight", {FFN(out_norm.gain)}, 0, 0, 1}, {"output_layer_norm.bias", {FFN(out_norm.bias)}, 0, 0, 0},
    /* GPT-2: Conv1D is [in, out] */
    {"ln_1.weight", {ATTN(in_norm.gain)}, 0, 0, 1}, {"ln_1.bias", {ATTN(in_norm.bias)}, 0, 0, 0},
    {"attn.c_attn.weight", {ATTN(wq), ATTN(wk), ATTN(wv)}, 0, 1, 0}, {"attn.c_attn.bias", {ATTN(bq), ATTN(bk), ATTN(bv)}, 0, 0, 0},
    {"attn.c_proj.weight", {ATTN(wo)}, 0, 1, 0}, {"attn.c_proj.bias", {ATTN(bo)}, 0, 0, 0},
    {"ln_2.weight", {FFN(in_norm.gain)}, 0, 0, 1}, {"ln_2.bias", {FFN(in_norm.bias)}, 0, 0, 0},
    {"mlp.c_fc.weight", {LAYER_WEIGHT}, 1, 1, 0}, {"mlp.c_fc.bias", {LAYER_BIAS}, 1, 0, 0},
    {"mlp.c_proj.weight", {LAYER_WEIGHT}, 2, 1, 0}, {"mlp.c_proj.bias", {LAYER_BIAS}, 2, 0, 0},
    /* Llama, Mistral, Qwen2 */
    {"input_layernorm.weight", {ATTN(in_norm.gain)}, 0, 0, 1}, {"post_attention_layernorm.weight", {FFN(in_norm.gain)}, 0, 0, 1},
    {"self_attn.q_proj.weight", {ATTN(wq)}, 0, 0, 0}, {"self_attn.q_proj.bias", {ATTN(bq)}, 0, 0, 0},
    {"self_attn.k_proj.weight", {ATTN(wk)}, 0, 0, 0}, {"self_attn.k_proj.bias", {ATTN(bk)}, 0, 0, 0},
    {"self_attn.v_proj.weight", {ATTN(wv)}, 0, 0, 0}, {"self_attn.v_proj.bias", {ATTN(bv)}, 0, 0, 0},
    {"self_attn.o_proj.weight", {ATTN(wo)}, 0, 0, 0}, {"self_attn.o_proj.bias", {ATTN(bo)}, 0, 0, 0},
    {"mlp.gate_proj.weight", {LAYER_WEIGHT}, 1, 0, 0}, {"mlp.gate_proj.bias", {LAYER_BIAS}, 1, 0, 0},
    {"mlp.up_proj.weight", {LAYER_WEIGHT}, 2, 0, 0}, {"mlp.up_proj.bias", {LAYER_BIAS}, 2, 0, 0},
    {"mlp.down_proj.weight", {LAYER_WEIGHT}, 3, 0, 0}, {"mlp.down_proj.bias", {LAYER_BIAS}, 3, 0, 0},
};
/* clang-format on */

/* One tensor of the new file: bytes of the source, or numbers of the model. */
typedef struct new_tensor {
    const st_tensor *from;
    const block_part *part; /* NULL: as it came */
    const pare_weight *w[3];
    size_t nw, ndim, shape[PARE_MAX_DIMS];
    bool gone; /* of a block that is not there any more */
} new_tensor;

static size_t bytes_of(const new_tensor *t)
{
    size_t n = pare_dtype_size(t->from->dtype);
    for (size_t i = 0; i < t->ndim; i++) n *= t->shape[i];
    return n;
}

/* "encoder.layer.3.output.dense.bias" -> 3, "output.dense.bias"; false: of no block. */
static bool split_key(const char *key, size_t *block, const char **rest)
{
    static const char *const before[] = {"encoder.layer.", "layer.", "layers.", "h."};
    for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
        const size_t n = strlen(before[i]);
        char *end = NULL;
        if (strncmp(key, before[i], n) != 0 || key[n] < '0' || key[n] > '9') continue;
        *block = strtoul(key + n, &end, 10);
        if (*end != '.') return false;
        *rest = end + 1;
        return true;
    }
    return false;
}

static const pare_weight *weight_of(const pare_block *b, const block_part *p, size_t i)
{
    if (!p->layer) return (const pare_weight *)((const char *)b + p->at[i]);
    if (b->ffn.kind == PARE_FFN_NONE || p->layer > b->ffn.nlayers) return NULL;
    const pare_dense *const d = &b->ffn.layers[p->layer - 1];
    return p->at[0] == LAYER_BIAS ? &d->b : &d->w;
}

static new_tensor plan_tensor(like *x, const st_tensor *from)
{
    new_tensor t = {.from = from, .ndim = from->ndim};
    const char *rest = NULL;
    size_t block = 0, rows = 0;
    memcpy(t.shape, from->shape, sizeof t.shape);
    if (!split_key(im_key(from->name), &block, &rest)) return t;
    t.gone = block >= x->m->nblocks;
    for (size_t i = 0; i < sizeof parts / sizeof *parts && !t.gone; i++)
        if (strcmp(parts[i].rest, rest) == 0) t.part = &parts[i];
    if (!t.part || t.gone) return t;
    for (; t.nw < 3 && (t.nw == 0 || t.part->at[t.nw]); t.nw++) {
        const pare_weight *const w = weight_of(&x->m->blocks[block], t.part, t.nw);
        if (!w || (!pare_has(w) && from->ndim != 1)) {
            refuse(x, pare_sprintf(x->arena, "block %zu has no %s any more", block, rest));
            return t;
        }
        t.w[t.nw] = w;
        rows += from->ndim == 1 ? w->cols : w->rows;
    }
    if (from->ndim == 1)
        t.shape[0] = pare_has(t.w[0]) ? rows : from->shape[0];
    else
        t.shape[t.part->transposed ? 1 : 0] = rows,
                                         t.shape[t.part->transposed ? 0 : 1] = t.w[0]->cols;
    return t;
}

/* ---- weights files ------------------------------------------------------------------------- */

static double number_at(const new_tensor *t, size_t i)
{
    const bool vector = t->ndim == 1;
    const size_t rows = vector ? 1 : t->shape[t->part->transposed ? 1 : 0];
    const size_t cols = vector ? t->shape[0] : t->shape[t->part->transposed ? 0 : 1];
    size_t row = t->part->transposed ? i % rows : i / cols;
    size_t col = t->part->transposed ? i / rows : i % cols;
    for (size_t k = 0; k < t->nw; k++) {
        const pare_weight *const w = t->w[k];
        const size_t n = vector ? cols / t->nw : w->rows;
        size_t *const at = vector ? &col : &row;
        if (*at >= n) {
            *at -= n;
            continue;
        }
        return pare_has(w) ? pare_weight_at(w, vector ? col : row * w->cols + col)
                           : t->part->absent;
    }
    return t->part->absent;
}

static void put_number(uint8_t *to, pare_dtype dtype, double v)
{
    const float f = (float)v;
    const uint16_t h = dtype == PARE_F16 ? pare_f16_of(v) : pare_bf16_of(v);
    if (dtype == PARE_F64)
        memcpy(to, &v, sizeof v);
    else if (dtype == PARE_F32)
        memcpy(to, &f, sizeof f);
    else
        memcpy(to, &h, sizeof h);
}

static void write_tensor(like *x, pare_out *o, const new_tensor *t)
{
    enum { SOME = 4096 };
    uint8_t some[SOME * sizeof(double)];
    const size_t size = pare_dtype_size(t->from->dtype), n = bytes_of(t) / size;
    if (!t->part) {
        x->st = pare_out_write(o, t->from->data, t->from->end - t->from->begin, x->err);
        return;
    }
    for (size_t i = 0, k; i < n && !x->st; i += k) {
        k = n - i < SOME ? n - i : SOME;
        for (size_t j = 0; j < k; j++)
            put_number(some + j * size, t->from->dtype, number_at(t, i + j));
        x->st = pare_out_write(o, some, k * size, x->err);
    }
}

static void write_header(like *x, pare_out *o, const st_file *f, const new_tensor *t)
{
    cJSON *const root = cJSON_CreateObject();
    cJSON *const meta = root && f->nmeta ? pare_json_add_object(root, "__metadata__") : NULL;
    bool ok = root && (meta || !f->nmeta);
    size_t at = 0, n = 0;
    for (size_t i = 0; ok && i < f->nmeta; i++)
        ok = pare_json_add_string(meta, f->meta_key[i], f->meta_value[i]);
    for (size_t i = 0; ok && i < f->n; i++) {
        if (t[i].gone) continue;
        cJSON *const e = pare_json_add_object(root, f->tensors[i].name);
        ok = e && pare_json_add_string(e, "dtype", pare_dtype_name(f->tensors[i].dtype));
        cJSON *const shape = ok ? pare_json_add_array(e, "shape") : NULL;
        for (size_t k = 0; shape && ok && k < t[i].ndim; k++)
            ok = pare_json_add_size(shape, NULL, t[i].shape[k]);
        cJSON *const range = shape && ok ? pare_json_add_array(e, "data_offsets") : NULL;
        ok = range && pare_json_add_size(range, NULL, at) &&
             pare_json_add_size(range, NULL, at + bytes_of(&t[i]));
        at += bytes_of(&t[i]);
    }
    char *text = NULL;
    if (!x->st)
        x->st = ok ? pare_json_print(&text, &n, x->arena, root, 0, x->err) : pare_no_memory(x->err);
    cJSON_Delete(root);
    const uint64_t padded = (n + 7) / 8 * 8;
    if (!x->st) x->st = pare_out_write(o, &padded, sizeof padded, x->err);
    if (!x->st) x->st = pare_out_write(o, text, n, x->err);
    if (!x->st) x->st = pare_out_write(o, "        ", padded - n, x->err);
}

static const char *name_of(const char *path)
{
    const char *const slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* One weights file of the source, with the model's numbers. *bytes: of its tensors. */
static void write_weights(like *x, const st_file *f, const char *folder, size_t *bytes)
{
    const pare_mark mark = pare_arena_mark(x->arena);
    new_tensor *const t = x->st ? NULL : pare_alloc(x->arena, f->n + 1, sizeof *t);
    pare_out *o = NULL;
    if (!x->st && !t) x->st = pare_no_memory(x->err);
    for (size_t i = 0; i < f->n && !x->st; i++) {
        t[i] = plan_tensor(x, &f->tensors[i]);
        if (!t[i].gone) *bytes += bytes_of(&t[i]);
    }
    const char *const path = inside(x, folder, name_of(f->blob->path));
    if (!x->st) x->st = pare_out_open(&o, path, false, x->err);
    if (!x->st) write_header(x, o, f, t);
    for (size_t i = 0; i < f->n && !x->st; i++)
        if (!t[i].gone) write_tensor(x, o, &t[i]);
    if (!x->st)
        x->st = pare_out_commit(o, x->err);
    else
        pare_out_abort(o);
    pare_arena_reset(x->arena, mark);
}

/* ---- config.json and the index ------------------------------------------------------------- */

static void write_json(like *x, const cJSON *root, const char *path)
{
    char *text = NULL;
    size_t n = 0;
    pare_out *o = NULL;
    if (!x->st) x->st = pare_json_print(&text, &n, x->arena, root, 2, x->err);
    if (!x->st) x->st = pare_out_open(&o, path, false, x->err);
    if (!x->st) x->st = pare_out_write(o, text, n, x->err);
    if (!x->st) x->st = pare_out_write(o, "\n", 1, x->err);
    if (!x->st)
        x->st = pare_out_commit(o, x->err);
    else
        pare_out_abort(o);
}

static void set_size(like *x, const char *key, size_t value)
{
    cJSON *const item = x->s.config ? cJSON_GetObjectItemCaseSensitive(x->s.config, key) : NULL;
    if (item && (cJSON_IsNumber(item) || cJSON_IsNull(item)))
        cJSON_ReplaceItemInObjectCaseSensitive(x->s.config, key, cJSON_CreateNumber((double)value));
}

static void write_config(like *x, const char *folder)
{
    static const char *const hidden[] = {"intermediate_size", "hidden_dim", "n_inner"},
                             *const layers[] = {"num_hidden_layers", "n_layers", "n_layer"};
    const pare_model *const m = x->m, *const in = x->in;
    if (x->st || !x->s.config) return;
    const size_t now =
                     m->nblocks && m->blocks[0].ffn.nlayers ? m->blocks[0].ffn.layers[0].w.rows : 0,
                 was = in->nblocks && in->blocks[0].ffn.nlayers ? in->blocks[0].ffn.layers[0].w.rows
                                                                : 0;
    for (size_t i = 0; i < 3; i++) {
        if (now && now != was) set_size(x, hidden[i], now);
        if (m->nblocks != in->nblocks) set_size(x, layers[i], m->nblocks);
    }
    if (now && now != was && strcmp(in->name ? in->name : "", "gpt2") == 0 &&
        !cJSON_GetObjectItemCaseSensitive(x->s.config, "n_inner") &&
        !pare_json_add_size(x->s.config, "n_inner", now))
        x->st = pare_no_memory(x->err);
    write_json(x, x->s.config, inside(x, folder, "config.json"));
}

/* The index of the shards, with the new total; tensors of blocks that are gone leave it. */
static void write_index(like *x, const char *from, const char *to, size_t bytes)
{
    cJSON *root = NULL;
    im_read_json(&x->s, &root, from);
    if (!x->st) x->st = x->s.st;
    if (!x->st && root) {
        cJSON *const meta = cJSON_GetObjectItemCaseSensitive(root, "metadata");
        cJSON *const map = cJSON_GetObjectItemCaseSensitive(root, "weight_map");
        if (cJSON_IsObject(meta) && cJSON_GetObjectItemCaseSensitive(meta, "total_size"))
            cJSON_ReplaceItemInObjectCaseSensitive(meta, "total_size",
                                                   cJSON_CreateNumber((double)bytes));
        for (cJSON *i = map ? map->child : NULL, *next; i; i = next) {
            const char *rest = NULL;
            size_t block = 0;
            next = i->next;
            if (split_key(im_key(i->string), &block, &rest) && block >= x->m->nblocks)
                cJSON_Delete(cJSON_DetachItemViaPointer(map, i));
        }
        write_json(x, root, to);
    }
    cJSON_Delete(root);
}

/* ---- the other files ----------------------------------------------------------------------- */

static void copy_file(like *x, const char *from, const char *to)
{
    pare_blob *b = NULL;
    pare_out *o = NULL;
    if (!x->st) x->st = pare_blob_open(&b, from, x->err);
    if (!x->st) x->st = pare_out_open(&o, to, false, x->err);
    if (!x->st) x->st = pare_out_write(o, b->data, b->bytes, x->err);
    if (!x->st)
        x->st = pare_out_commit(o, x->err);
    else
        pare_out_abort(o);
    pare_blob_release(b);
}

static bool ends_with(const char *name, const char *tail)
{
    const size_t n = strlen(name), t = strlen(tail);
    return n >= t && strcmp(name + n - t, tail) == 0;
}

/* Weights of the uncut model in other forms, and what pare has written beside the source. */
static bool is_stale(const char *name)
{
    static const char *const tails[] = {".bin", ".onnx", ".h5", ".msgpack", ".gguf", ".ot",
                                        ".pt",  ".pth",  ".pb", ".tflite",  ".ckpt", ".mlmodel"};
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++)
        if (ends_with(name, tails[i])) return true;
    return strcmp(name, "pare.cert.json") == 0 || strcmp(name, "pare.run.json") == 0;
}

static bool make_folder(like *x, const char *path)
{
    if (!x->st && mkdir(path, 0777) != 0 && errno != EEXIST)
        x->st = pare_fail(x->err, PARE_ERR_IO, "%s: %s", path, strerror(errno));
    return !x->st;
}

/* The files of one folder of the source. `model`: that of the transformer. */
static void copy_folder(like *x, const char *from, const char *to, bool model, size_t bytes)
{
    char **names = NULL;
    size_t n = 0;
    if (!x->st) x->st = pare_folder_list(&names, &n, x->arena, from, x->err);
    for (size_t i = 0; i < n && !x->st; i++) {
        const char *const a = inside(x, from, names[i]), *const b = inside(x, to, names[i]);
        const bool weights = ends_with(names[i], ".safetensors");
        if (x->st || is_stale(names[i]) ||
            (model && (weights || strcmp(names[i], "config.json") == 0)))
            continue;
        if (model && ends_with(names[i], ".safetensors.index.json"))
            write_index(x, a, b, bytes);
        else
            copy_file(x, a, b);
    }
}

/* Folders of modules: 1_Pooling, 2_Dense and others that begin with a digit. */
static void copy_modules(like *x, const char *source, const char *transformer, size_t bytes)
{
    DIR *const d = x->st ? NULL : opendir(source);
    for (const struct dirent *e; d && !x->st && (e = readdir(d));) {
        if (e->d_name[0] < '0' || e->d_name[0] > '9') continue;
        const char *const a = inside(x, source, e->d_name), *const b =
                                                                inside(x, x->folder, e->d_name);
        if (!x->st && pare_is_dir(a) && make_folder(x, b))
            copy_folder(x, a, b, strcmp(a, transformer) == 0, bytes);
    }
    if (d) closedir(d);
}

/* What the user told about the outputs, as the files that sentence-transformers reads. */
static void write_told(like *x)
{
    const pare_load_opts *const told = &x->in->read_as;
    if (x->st || (told->pool == PARE_POOL_NONE && !told->normalize)) return;
    static const char *const modes[] = {"pooling_mode_cls_token", "pooling_mode_mean_tokens",
                                        "pooling_mode_max_tokens", "pooling_mode_lasttoken"};
    const pare_pool pool = x->m->head.pool;
    const char *const list = inside(x, x->folder, "modules.json");
    const char *const sub = inside(x, x->folder, "1_Pooling");
    const char *const path = inside(x, x->folder, "1_Pooling/config.json");
    if (x->st) return;
    unlink(list);
    unlink(path);
    if (!make_folder(x, sub)) return;
    cJSON *const root = cJSON_CreateArray(), *const config = cJSON_CreateObject();
    static const char *const module[][2] = {
        {"", "Transformer"}, {"1_Pooling", "Pooling"}, {"2_Normalize", "Normalize"}};
    bool ok = root && config;
    for (size_t i = 0; ok && i < (x->m->head.normalize ? 3u : 2u); i++) {
        char idx[2] = {(char)('0' + i), 0}, type[80];
        snprintf(type, sizeof type, "sentence_transformers.models.%s", module[i][1]);
        cJSON *const o = cJSON_CreateObject();
        ok = o && cJSON_AddItemToArray(root, o) &&
             pare_json_add_values(o, "idx:z name:s path:s type:s", i, idx, module[i][0], type);
    }
    ok = ok && pare_json_add_size(config, "word_embedding_dimension",
                                  pare_model_width(x->m, x->m->nblocks));
    for (size_t i = 0; ok && i < 4; i++)
        ok = pare_json_add_bool(config, modes[i], (size_t)pool == i + PARE_POOL_FIRST);
    if (!ok) x->st = pare_no_memory(x->err);
    write_json(x, root, list);
    write_json(x, config, path);
    cJSON_Delete(root);
    cJSON_Delete(config);
}

/* ---- the check ----------------------------------------------------------------------------- */

typedef struct weights {
    const pare_weight *w[8192];
    size_t n;
} weights;

static pare_status collect(void *self, const char *name, pare_weight *w, bool vector, pare_err *err)
{
    weights *const all = self;
    (void)name, (void)vector, (void)err;
    if (all->n < sizeof all->w / sizeof *all->w) all->w[all->n] = w;
    all->n++;
    return PARE_OK;
}

/* Equal but for the rounding of the source's type. */
static bool same_weight(const pare_weight *a, const pare_weight *b, double unit)
{
    if (pare_has(a) != pare_has(b)) return false;
    if (!pare_has(a)) return true;
    if (a->rows != b->rows || a->cols != b->cols) return false;
    for (size_t i = 0; i < a->rows * a->cols; i++) {
        const double u = pare_weight_at(a, i), v = pare_weight_at(b, i);
        if (!(fabs(u - v) <= unit * fabs(u) + 0x1p-25)) return false;
    }
    return true;
}

static void check_folder(like *x)
{
    pare_model *again = NULL;
    pare_files *const files = pare_files_new_unhashed();
    weights *const a = pare_alloc(x->arena, 1, sizeof *a), *const b =
                                                               pare_alloc(x->arena, 1, sizeof *b);
    char is[PARE_SHA256_HEX] = "", want[PARE_SHA256_HEX] = "";
    const pare_dtype p = pare_model_precision(x->in);
    const double unit = p == PARE_BF16 ? 0x1p-8 : p == PARE_F16 ? 0x1p-11 : 0x1p-24;
    if (!x->st && (!files || !a || !b)) x->st = pare_no_memory(x->err);
    if (!x->st) x->st = pare_model_load_as(&again, x->folder, NULL, files, x->err);
    if (!x->st) x->st = pare_architecture_sha256(is, again, x->err);
    if (!x->st) x->st = pare_architecture_sha256(want, x->m, x->err);
    if (!x->st && strcmp(is, want) != 0)
        refuse(x, "its config has no keys for the shapes of the cut");
    if (!x->st) x->st = pare_model_each_weight(again, collect, a, x->err);
    if (!x->st) x->st = pare_model_each_weight((pare_model *)x->m, collect, b, x->err);
    if (!x->st && (a->n != b->n || a->n > sizeof a->w / sizeof *a->w))
        refuse(x, "it has other tensors");
    for (size_t i = 0; !x->st && i < a->n; i++)
        if (!same_weight(a->w[i], b->w[i], unit))
            refuse(x, "weights outside of the blocks have changed, or do not fit its precision");
    pare_model_free(again);
    pare_files_free(files);
}

/* ---- all of it ----------------------------------------------------------------------------- */

void pare_folder_remove(const char *path)
{
    DIR *const d = opendir(path);
    for (const struct dirent *e; d && (e = readdir(d));) {
        char name[PATH_MAX];
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        const int n = snprintf(name, sizeof name, "%s/%s", path, e->d_name);
        struct stat info;
        if (n <= 0 || (size_t)n >= sizeof name || lstat(name, &info) != 0) continue;
        if (S_ISDIR(info.st_mode))
            pare_folder_remove(name);
        else
            unlink(name);
    }
    if (d) closedir(d);
    rmdir(path);
}

pare_status pare_export_like(const pare_model *m, const pare_model *in, const char *source,
                             const char *folder, pare_err *err)
{
    like x = {.m = m, .in = in, .folder = folder, .arena = pare_arena_new(), .err = err};
    pare_files *const files = pare_files_new_unhashed();
    size_t bytes = 0, length = strlen(source);
    while (length > 1 && source[length - 1] == '/') length--;
    x.s = (im_source){.path = source, .in = files, .err = err, .scratch = x.arena};
    x.st = x.arena && files ? pare_model_new(&x.s.m, err) : pare_no_memory(err);
    const char *const top = x.st ? NULL : pare_strndup(x.arena, source, length);
    if (!x.st && !top) x.st = pare_no_memory(err);
    if (!x.st) im_open_folder(&x.s, top);
    if (!x.st) x.st = x.s.st;
    const char *transformer = top;
    if (!x.st && x.s.nfiles) { /* may be in a folder of its own: 0_Transformer */
        const char *const path = x.s.files[0].blob->path;
        transformer = pare_strndup(x.arena, path, (size_t)(strrchr(path, '/') - path));
        if (!transformer) x.st = pare_no_memory(err);
    }
    const char *to = folder;
    const bool made = !x.st && make_folder(&x, folder);
    if (!x.st && strcmp(transformer, top) != 0) {
        to = inside(&x, folder, name_of(transformer));
        make_folder(&x, to);
    }
    const size_t nweights = x.s.nfiles - (x.s.nfiles && x.s.pooling.dense ? 1 : 0);
    for (size_t f = 0; f < nweights && !x.st; f++) write_weights(&x, &x.s.files[f], to, &bytes);
    write_config(&x, to);
    if (!x.st) copy_folder(&x, top, folder, to == folder, bytes);
    copy_modules(&x, top, transformer, bytes);
    write_told(&x);
    check_folder(&x);
    im_close(&x.s);
    pare_model_free(x.s.m);
    pare_files_free(files);
    pare_arena_free(x.arena);
    if (x.st && made) pare_folder_remove(folder);
    return x.st;
}
