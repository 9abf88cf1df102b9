/* export_like.c - a cut of a Hugging Face folder as a folder of the same kind.
 *
 * Every tensor of the source goes out under its name and in its type, in model.safetensors or in its
 * shard: those of the blocks with the numbers of the model, all others byte for byte (embedding and
 * head must not have changed).
 * config.json keeps its keys but for the sizes that changed; tokenizers, pooling, cards and every
 * other small file are copied. At the end the folder is loaded, and must be the model that was
 * meant: the same architecture, and every weight to the precision it is stored in. What a family's
 * config cannot say is refused there.
 *
 * BERT's pooler stays where the outputs are pooled otherwise, though nothing reads it then: without
 * it transformers makes one of random numbers when the folder is opened, and warns.
 *
 * The model `in` itself goes out as it came in: its weights files and config.json are copied. */
#include "base/array.h"
#include "model/precision.h"
#include "base/support.h"
#include "export_hf.h"
#include "export_like.h"
#include "import_families.h"
#include "model/model_equality.h"
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
    bool uncut;         /* m is in: files are copied */
    pare_dtype dtype;   /* of all weights; 0: each as the source has it */
    size_t extra;       /* blocks behind the family's own layers: a masked-word head */
    const char *folder; /* to be written */
    bool made;          /* the folder is there, and of this call */
    bool dry;           /* nothing is written, and folder is the source: only `growth` is wanted */
    int64_t growth;     /* bytes of the new files less those of the ones that they replace */
    im_source s;        /* the source */
    pare_arena *arena;
    pare_status st;
    pare_err *err;
} like;

/* why NULL: memory was out when it was made. */
static void refuse(like *x, const char *why)
{
    if (!why && !x->st) x->st = pare_no_memory(x->err);
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

/* Of the head, where a fold may change them: the last norm and the map that reads it. */
static const struct {
    const char *key;
    size_t at; /* offset in pare_model */
    block_part part;
} head_parts[] = {
    {"norm.weight", offsetof(pare_model, head.norm.gain), {"", {0}, 0, false, 1}},
    {"lm_head.weight", offsetof(pare_model, head.out.w), {"", {0}, 0, false, 0}},
    {"score.weight", offsetof(pare_model, head.out.w), {"", {0}, 0, false, 0}},
};

/* One tensor of the new file: bytes of the source, or numbers of the model. */
typedef struct new_tensor {
    const st_tensor *from;
    const block_part *part; /* NULL: as it came */
    const pare_weight *w[3];
    size_t nw, ndim, shape[PARE_MAX_DIMS];
    pare_dtype dtype;
    bool removed; /* of a block that is not there any more */
} new_tensor;

static size_t bytes_of(const new_tensor *t)
{
    size_t n = pare_dtype_size(t->dtype);
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

static bool is_floating(pare_dtype t)
{
    return t == PARE_F16 || t == PARE_BF16 || t == PARE_F32 || t == PARE_F64;
}

static bool is_removed(const like *x, size_t block)
{
    return block + x->extra >= x->m->nblocks;
}

static void plan_head_tensor(const like *x, new_tensor *t)
{
    const char *const key = im_key(t->from->name);
    for (size_t i = 0; i < sizeof head_parts / sizeof *head_parts; i++) {
        const pare_weight *const w = (const pare_weight *)((const char *)x->m + head_parts[i].at);
        const pare_weight *const old =
            (const pare_weight *)((const char *)x->in + head_parts[i].at);
        if (strcmp(key, head_parts[i].key) != 0 || !pare_has(old) || pare_same_weight(w, old))
            continue;
        t->part = &head_parts[i].part;
        t->w[t->nw++] = w;
    }
}

static new_tensor plan_tensor(like *x, const st_tensor *from)
{
    const bool converted = x->dtype && is_floating(from->dtype);
    new_tensor t = {.from = from, .ndim = from->ndim, .dtype = converted ? x->dtype : from->dtype};
    const char *rest = NULL;
    size_t block = 0, rows = 0;
    memcpy(t.shape, from->shape, sizeof t.shape);
    if (!split_key(im_key(from->name), &block, &rest)) {
        plan_head_tensor(x, &t);
        return t;
    }
    t.removed = is_removed(x, block);
    for (size_t i = 0; i < sizeof parts / sizeof *parts && !t.removed; i++)
        if (strcmp(parts[i].rest, rest) == 0) t.part = &parts[i];
    if (!t.part || t.removed) return t;
    for (; t.nw < 3 && (t.nw == 0 || t.part->at[t.nw]); t.nw++) {
        const pare_weight *const w = weight_of(&x->m->blocks[block], t.part, t.nw);
        if (!w || (!pare_has(w) && from->ndim != 1)) {
            refuse(x, pare_sprintf(x->arena, "block %zu has no %s any more", block, rest));
            return t;
        }
        t.w[t.nw] = w;
        rows += w->rows;
    }
    if (from->ndim > 1) {
        t.shape[t.part->transposed ? 1 : 0] = rows;
        t.shape[t.part->transposed ? 0 : 1] = t.w[0]->cols;
    } else if (t.part->layer) { /* a bias of zeros need not be there */
        t.shape[0] = x->m->blocks[block].ffn.layers[t.part->layer - 1].w.rows;
    }
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
    const size_t size = pare_dtype_size(t->dtype), n = bytes_of(t) / size;
    const pare_array old = {.dtype = t->from->dtype, .data = t->from->data};
    if (!t->part && t->dtype == t->from->dtype) {
        x->st = pare_out_write(o, t->from->data, t->from->end - t->from->begin, x->err);
        return;
    }
    for (size_t i = 0, k; i < n && !x->st; i += k) {
        k = n - i < SOME ? n - i : SOME;
        for (size_t j = 0; j < k; j++)
            put_number(some + j * size, t->dtype,
                       t->part ? number_at(t, i + j) : pare_array_f64(&old, i + j));
        x->st = pare_out_write(o, some, k * size, x->err);
    }
}

/* The header of a weights file, its length in front and padded with blanks. */
static void make_header(like *x, char **out, size_t *bytes, const st_file *f, const new_tensor *t)
{
    cJSON *const root = cJSON_CreateObject();
    cJSON *const meta = root && f->nmeta ? pare_json_add_object(root, "__metadata__") : NULL;
    bool ok = root && (meta || !f->nmeta);
    size_t at = 0, n = 0;
    for (size_t i = 0; ok && i < f->nmeta; i++)
        ok = pare_json_add_string(meta, f->meta_key[i], f->meta_value[i]);
    for (size_t i = 0; ok && i < f->n; i++) {
        if (t[i].removed) continue;
        cJSON *const e = pare_json_add_object(root, f->tensors[i].name);
        ok = e && pare_json_add_string(e, "dtype", pare_dtype_name(t[i].dtype));
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
    char *const whole = x->st ? NULL : pare_alloc(x->arena, sizeof padded + padded, 1);
    if (!x->st && !whole) x->st = pare_no_memory(x->err);
    if (x->st) return;
    memcpy(whole, &padded, sizeof padded);
    memcpy(whole + sizeof padded, text, n);
    memset(whole + sizeof padded + n, ' ', padded - n);
    *out = whole;
    *bytes = sizeof padded + padded;
}

static const char *name_of(const char *path)
{
    const char *const slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The name that loaders look for, whatever a single file of weights was called; shards keep theirs,
 * which their index has. */
static const char *name_of_weights(const st_file *f, size_t nfiles)
{
    const char *const name = name_of(f->blob->path);
    return nfiles > 1 || strstr(name, "-of-") ? name : "model.safetensors";
}

/* One weights file of the source, with the model's numbers. *bytes: of its tensors. */
static void write_weights(like *x, const st_file *f, const char *folder, const char *name,
                          size_t *bytes)
{
    const pare_mark mark = pare_arena_mark(x->arena);
    new_tensor *const t = x->st ? NULL : pare_alloc(x->arena, f->n + 1, sizeof *t);
    pare_out *o = NULL;
    char *header = NULL;
    size_t tensors = 0, n = 0;
    if (!x->st && !t) x->st = pare_no_memory(x->err);
    for (size_t i = 0; i < f->n && !x->st; i++) {
        t[i] = plan_tensor(x, &f->tensors[i]);
        if (!t[i].removed) tensors += bytes_of(&t[i]);
    }
    *bytes += tensors;
    if (!x->st) make_header(x, &header, &n, f, t);
    x->growth += (int64_t)(n + tensors) - (int64_t)f->blob->bytes;
    if (!x->dry) {
        const char *const path = inside(x, folder, name);
        if (!x->st) x->st = pare_out_open(&o, path, false, x->err);
        if (!x->st) x->st = pare_out_write(o, header, n, x->err);
        for (size_t i = 0; i < f->n && !x->st; i++)
            if (!t[i].removed) write_tensor(x, o, &t[i]);
        if (!x->st)
            x->st = pare_out_commit(o, x->err);
        else
            pare_out_abort(o);
    }
    pare_arena_reset(x->arena, mark);
}

/* ---- config.json and the index ------------------------------------------------------------- */

static void write_json(like *x, const cJSON *root, const char *path)
{
    char *text = NULL;
    size_t n = 0;
    pare_out *o = NULL;
    if (!x->st) x->st = pare_json_print(&text, &n, x->arena, root, 2, x->err);
    if (!x->st && x->dry) x->growth += (int64_t)(n + 1) - (int64_t)pare_path_bytes(path);
    if (x->dry) return;
    if (!x->st) x->st = pare_out_open(&o, path, false, x->err);
    if (!x->st) x->st = pare_out_write(o, text, n, x->err);
    if (!x->st) x->st = pare_out_write(o, "\n", 1, x->err);
    if (!x->st)
        x->st = pare_out_commit(o, x->err);
    else
        pare_out_abort(o);
}

/* Each family has its own key for the same size. */
static const char *const hidden_keys[] = {"intermediate_size", "hidden_dim", "n_inner"};
static const char *const layer_keys[] = {"num_hidden_layers", "n_layers", "n_layer"};
static const char *const dtype_keys[] = {"torch_dtype", "dtype"};

/* In place: nothing is allocated. */
static void set_number(cJSON *item, double value)
{
    item->type = cJSON_Number;
    cJSON_SetNumberHelper(item, value);
}

static void set_size(like *x, const char *key, size_t value)
{
    cJSON *const item = cJSON_GetObjectItemCaseSensitive(x->s.config, key);
    if (item && (cJSON_IsNumber(item) || cJSON_IsNull(item))) set_number(item, (double)value);
}

static size_t units_of(const pare_block *b)
{
    return b->ffn.nlayers ? b->ffn.layers[0].w.rows : 0;
}

static void write_config(like *x, const char *folder)
{
    const pare_model *const m = x->m, *const in = x->in;
    cJSON *const config = x->s.config;
    if (x->st || m->nblocks == 0) return;
    const size_t units = units_of(&m->blocks[0]), old = units_of(&in->blocks[0]);
    for (size_t i = 0; i < 3; i++) {
        if (units != old) set_size(x, hidden_keys[i], units);
        if (m->nblocks != in->nblocks) set_size(x, layer_keys[i], m->nblocks - x->extra);
    }
    if (!x->st && units != old && strcmp(in->name, "gpt2") == 0 &&
        !cJSON_GetObjectItemCaseSensitive(config, "n_inner") &&
        !pare_json_add_size(config, "n_inner", units))
        x->st = pare_no_memory(x->err);
    for (size_t i = 0; i < 2 && x->dtype && !x->st; i++) {
        cJSON *const item = cJSON_GetObjectItemCaseSensitive(config, dtype_keys[i]);
        if (cJSON_IsString(item) && !cJSON_SetValuestring(item, x->dtype == PARE_F16    ? "float16"
                                                                : x->dtype == PARE_BF16 ? "bfloat16"
                                                                : x->dtype == PARE_F32  ? "float32"
                                                                                       : "float64"))
            x->st = pare_no_memory(x->err);
    }
    write_json(x, config, inside(x, folder, "config.json"));
}

/* Masked-word models have a block more than their config says: the head (import_bert.c). */
static void count_extra(like *x)
{
    for (size_t i = 0; i < 3 && !x->st; i++) {
        size_t layers = 0;
        const cJSON *const item = cJSON_GetObjectItemCaseSensitive(x->s.config, layer_keys[i]);
        if (!cJSON_IsNumber(item)) continue;
        x->st = pare_json_size(&layers, x->s.config, layer_keys[i], x->err);
        if (!x->st && layers < x->in->nblocks) x->extra = x->in->nblocks - layers;
    }
}

/* A config has one number for all blocks. */
static void check_units(like *x)
{
    const pare_model *const m = x->m;
    for (size_t b = 0; b + x->extra < m->nblocks && !x->st; b++)
        if (units_of(&m->blocks[b]) != units_of(&m->blocks[0]))
            refuse(x, pare_sprintf(x->arena, "block %zu has %zu hidden units, block 0 has %zu", b,
                                   units_of(&m->blocks[b]), units_of(&m->blocks[0])));
}

/* The index of the shards, with the new total; tensors of blocks that are removed leave it. */
static void write_index(like *x, const char *from, const char *to, size_t bytes)
{
    cJSON *root = NULL;
    im_read_json(&x->s, &root, from);
    if (!x->st) x->st = x->s.st;
    if (!x->st && root) {
        cJSON *const meta = cJSON_GetObjectItemCaseSensitive(root, "metadata");
        cJSON *const map = cJSON_GetObjectItemCaseSensitive(root, "weight_map");
        cJSON *const total = meta ? cJSON_GetObjectItemCaseSensitive(meta, "total_size") : NULL;
        if (total) set_number(total, (double)bytes);
        for (cJSON *i = map ? map->child : NULL, *next; i; i = next) {
            const char *rest = NULL;
            size_t block = 0;
            next = i->next;
            if (split_key(im_key(i->string), &block, &rest) && is_removed(x, block))
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
    if (x->dry) return;
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
static bool is_stale(const like *x, const char *name)
{
    static const char *const tails[] = {".bin", ".onnx", ".h5", ".msgpack", ".gguf", ".ot",
                                        ".pt",  ".pth",  ".pb", ".tflite",  ".ckpt", ".mlmodel"};
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++)
        if (!x->uncut && ends_with(name, tails[i])) return true;
    return strcmp(name, "pare.cert.json") == 0 || strcmp(name, "pare.run.json") == 0;
}

static bool make_folder(like *x, const char *path)
{
    if (!x->st && !x->dry && mkdir(path, 0777) != 0 && errno != EEXIST)
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
        const bool cut = model && !x->uncut;
        if (x->st || is_stale(x, names[i]) ||
            (cut && (weights || strcmp(names[i], "config.json") == 0)))
            continue;
        if (cut && ends_with(names[i], ".safetensors.index.json"))
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

/* sentence-transformers opens this file wherever there is a modules.json. */
static void write_limits(like *x, const char *path)
{
    if (x->st || !path || pare_file_exists(path)) return;
    cJSON *const root = cJSON_CreateObject();
    if (!root ||
        !pare_json_add_values(root, "max_seq_length:z do_lower_case:b", x->m->context, false))
        x->st = pare_no_memory(x->err);
    write_json(x, root, path);
    cJSON_Delete(root);
}

/* What the user told about the outputs, as the files that sentence-transformers reads. */
static void write_told(like *x, const char *transformer)
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
    if (!x->dry) unlink(list);
    if (!x->dry) unlink(path);
    if (!make_folder(x, sub)) return;
    cJSON *const root = cJSON_CreateArray(), *const config = cJSON_CreateObject();
    const char *const module[][2] = {
        {strcmp(transformer, x->folder) == 0 ? "" : name_of(transformer), "Transformer"},
        {"1_Pooling", "Pooling"},
        {"2_Normalize", "Normalize"}};
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
    write_limits(x, inside(x, transformer, "sentence_bert_config.json"));
    cJSON_Delete(root);
    cJSON_Delete(config);
}

/* ---- the check ----------------------------------------------------------------------------- */

enum { MOST_WEIGHTS = 8192 };
typedef struct weights {
    const pare_weight *w[MOST_WEIGHTS];
    char name[MOST_WEIGHTS][48];
    size_t n;
} weights;

static pare_status collect(void *self, const char *name, pare_weight *w, bool vector, pare_err *err)
{
    weights *const all = self;
    (void)vector, (void)err;
    if (all->n < MOST_WEIGHTS) {
        all->w[all->n] = w;
        snprintf(all->name[all->n], sizeof *all->name, "%s", name);
    }
    all->n++;
    return PARE_OK;
}

static bool all_are(const pare_weight *w, double v)
{
    for (size_t i = 0; pare_has(w) && i < w->rows * w->cols; i++)
        if (!(pare_weight_at(w, i) == v)) return false;
    return true;
}

/* Equal but for the rounding of the stored type. `summed`: positions and token types were rounded
 * one by one, and their sum may be smaller than both. A vector that the folder has and the model
 * does not was written as `absent`. */
static bool same_weight(const pare_weight *a, const pare_weight *b, double unit, bool summed,
                        double absent)
{
    double largest = 0;
    if (!pare_has(b)) return all_are(a, absent);
    if (!pare_has(a)) return false;
    if (a->rows != b->rows || a->cols != b->cols) return false;
    for (size_t i = 0; summed && i < a->rows * a->cols; i++)
        largest = fmax(largest, fabs(pare_weight_at(a, i)));
    for (size_t i = 0; i < a->rows * a->cols; i++) {
        const double u = pare_weight_at(a, i), v = pare_weight_at(b, i);
        if (!(fabs(u - v) <= unit * (fabs(u) + 2 * largest) + 0x1p-25)) return false;
    }
    return true;
}

static void check_folder(like *x)
{
    pare_model *again = NULL;
    pare_files *files = NULL;
    weights *const both = x->st ? NULL : pare_alloc(x->arena, 2, sizeof *both);
    char is[PARE_SHA256_HEX] = "", want[PARE_SHA256_HEX] = "";
    const pare_dtype p = x->dtype ? x->dtype : pare_model_precision(x->in);
    const double unit = p == PARE_BF16 ? 0x1p-8 : p == PARE_F16 ? 0x1p-11 : 0x1p-24;
    if (!x->st && (!both || !(files = pare_files_new_unhashed()))) x->st = pare_no_memory(x->err);
    weights *const a = both, *const b = both ? both + 1 : NULL;
    if (!x->st) x->st = pare_model_load_as(&again, x->folder, NULL, files, x->err);
    if (!x->st) x->st = pare_architecture_sha256(is, again, x->err);
    if (!x->st) x->st = pare_architecture_sha256(want, x->m, x->err);
    if (!x->st && strcmp(is, want) != 0)
        refuse(x, "its config has no keys for the shapes of the cut");
    if (!x->st) x->st = pare_model_each_weight(again, collect, a, x->err);
    if (!x->st) x->st = pare_model_each_weight((pare_model *)x->m, collect, b, x->err);
    if (!x->st && (a->n != b->n || a->n > MOST_WEIGHTS)) refuse(x, "it has other tensors");
    for (size_t i = 0; !x->st && i < a->n; i++)
        if (!same_weight(a->w[i], b->w[i], unit, x->dtype && a->w[i] == &again->embedding.pos.table,
                         ends_with(b->name[i], "gain") ? 1 : 0))
            refuse(x,
                   pare_sprintf(x->arena, "%s is another one when it is read again", b->name[i]));
    pare_model_free(again);
    pare_files_free(files);
}

/* ---- all of it ----------------------------------------------------------------------------- */

/* Everything but the check, below x->folder, or for its size alone. */
static void write_all(like *x, const char *source)
{
    pare_files *const files = pare_files_new_unhashed();
    size_t bytes = 0, length = strlen(source);
    while (length > 1 && source[length - 1] == '/') length--;
    x->s = (im_source){.path = source, .in = files, .err = x->err, .scratch = x->arena};
    x->st = x->arena && files ? pare_model_new(&x->s.m, x->err) : pare_no_memory(x->err);
    const char *const top = x->st ? NULL : pare_strndup(x->arena, source, length);
    if (!x->st && !top) x->st = pare_no_memory(x->err);
    if (!x->st) im_open_folder(&x->s, top);
    if (!x->st) x->st = x->s.st;
    if (!x->st && !x->uncut && !x->s.config)
        refuse(x, "there is no config.json, in which its sizes would stand");
    if (!x->st && !x->uncut) count_extra(x);
    if (!x->st && !x->uncut) check_units(x);
    const char *transformer = top;
    if (!x->st && x->s.nfiles) { /* may be in a folder of its own: 0_Transformer */
        const char *const path = x->s.files[0].blob->path;
        transformer = pare_strndup(x->arena, path, (size_t)(strrchr(path, '/') - path));
        if (!transformer) x->st = pare_no_memory(x->err);
    }
    if (x->dry) x->folder = top;
    const char *to = x->folder;
    if (!x->st && !x->dry && mkdir(x->folder, 0777) != 0)
        x->st = pare_fail(x->err, PARE_ERR_IO, "%s: %s", x->folder, strerror(errno));
    else
        x->made = !x->st && !x->dry;
    if (!x->st && strcmp(transformer, top) != 0) {
        to = inside(x, x->folder, name_of(transformer));
        make_folder(x, to);
    }
    const size_t nweights = x->s.nfiles - (x->s.nfiles && x->s.pooling.dense ? 1 : 0);
    for (size_t f = 0; f < nweights && !x->st && !x->uncut; f++)
        write_weights(x, &x->s.files[f], to, name_of_weights(&x->s.files[f], nweights), &bytes);
    if (!x->uncut) write_config(x, to);
    if (!x->st) copy_folder(x, top, x->folder, to == x->folder, bytes);
    copy_modules(x, top, transformer, bytes);
    write_told(x, to);
    im_close(&x->s);
    pare_model_free(x->s.m);
    pare_files_free(files);
}

pare_status pare_export_like(const pare_model *m, const pare_model *in, const char *source,
                             const char *folder, pare_dtype dtype, pare_err *err)
{
    like x = {.m = m,
              .in = in,
              .uncut = m == in,
              .dtype = dtype,
              .folder = folder,
              .arena = pare_arena_new(),
              .err = err};
    write_all(&x, source);
    check_folder(&x);
    pare_arena_free(x.arena);
    if (x.st && x.made) pare_folder_remove(folder);
    return x.st;
}

pare_status pare_export_like_growth(int64_t *out, const pare_model *m, const pare_model *in,
                                    const char *source, pare_dtype dtype, pare_err *err)
{
    like x = {.m = m, .in = in, .dtype = dtype, .dry = true, .arena = pare_arena_new(), .err = err};
    write_all(&x, source);
    pare_arena_free(x.arena);
    *out = x.growth;
    return x.st;
}
