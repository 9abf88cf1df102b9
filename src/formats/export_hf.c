/* export_hf.c - export under Hugging Face's names: which family, what it asks of a model, and the
 * two files. */
#include "export_hf.h"
#include "model/precision.h"
#include "model/shared_rows.h"
#include <errno.h>
#include <math.h>
#include "base/json.h"
#include <pare/model.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- what does not fit -------------------------------------------------------------------------
 */

void hf_need(hf *x, bool holds, const char *fmt, ...)
{
    char why[400];
    va_list args;
    if (holds || x->st) return;
    va_start(args, fmt);
    vsnprintf(why, sizeof why, fmt, args);
    va_end(args);
    x->st = pare_fail(x->err, PARE_ERR_INPUT, "no standard shape: %s", why);
}

void hf_check_norm(hf *x, const pare_norm *n, pare_norm_kind kind, size_t d, const char *where)
{
    hf_need(x, n->kind == kind, "%s: the norm is %s, not %s", where, pare_norm_name(n->kind),
            pare_norm_name(kind));
    hf_need(x, n->divisor == (double)d && n->shift == 0 && !pare_has(&n->offset),
            "%s: the norm divides by %g and not by the width %zu, or is shifted", where, n->divisor,
            d);
    if (x->eps < 0) x->eps = n->eps;
    hf_need(x, n->eps == x->eps, "%s: the norm has eps %g, others %g", where, n->eps, x->eps);
}

size_t hf_check_heads(hf *x, size_t l, char where[HF_WHERE])
{
    const pare_attn *const a = &x->m->blocks[l].attn;
    snprintf(where, HF_WHERE, "block %zu", l);
    hf_need(x, a->kind == PARE_ATTN_EXACT || a->kind == PARE_ATTN_POLY,
            "%s: the attention is %s, not softmax", where, pare_attn_name(a->kind));
    if (x->st) return 0;
    const pare_head *const h = a->heads;
    const size_t dk = h->dk, kv = dk ? a->wk.rows / dk : 0;
    hf_need(x,
            kv && a->nheads % kv == 0 && a->wk.rows == kv * dk && a->wv.rows == kv * dk &&
                a->wq.rows == a->nheads * dk && pare_has(&a->wo),
            "%s: %zu heads do not share %zu key and %zu value rows evenly", where, a->nheads,
            a->wk.rows, a->wv.rows);
    for (size_t i = 0; i < a->nheads && !x->st; i++) {
        const size_t at = i / (a->nheads / kv) * dk;
        hf_need(x, h[i].dk == dk && h[i].dv == dk, "%s: heads of %zu x %zu and of %zu x %zu", where,
                dk, h[0].dv, h[i].dk, h[i].dv);
        hf_need(x, h[i].q == i * dk && h[i].k == at && h[i].v == at,
                "%s: the heads are not in order", where);
        hf_need(x, fabs(h[i].scale * sqrt((double)dk) - 1) < 1e-6,
                "%s: the scale of head %zu is %g, not 1 / sqrt(%zu)", where, i, h[i].scale, dk);
    }
    return kv;
}

void hf_check_norms_before(hf *x, size_t l, pare_norm_kind kind, size_t d, const char *where)
{
    const pare_block *const b = &x->m->blocks[l];
    hf_check_norm(x, &b->attn.in_norm, kind, d, where);
    hf_check_norm(x, &b->ffn.in_norm, kind, d, where);
    hf_need(x, b->attn.out_norm.kind == PARE_NORM_NONE && b->ffn.out_norm.kind == PARE_NORM_NONE,
            "%s: has norms behind its branches", where);
}

void hf_check_stream(hf *x, size_t l, size_t d, const char *where)
{
    const pare_attn *const a = &x->m->blocks[l].attn;
    const pare_ffn *const f = &x->m->blocks[l].ffn;
    hf_need(x, a->skip.kind == PARE_SKIP_IDENTITY && f->skip.kind == PARE_SKIP_IDENTITY,
            "%s: a skip is not the identity", where);
    hf_need(x, a->din == d && a->dout == d && f->dout == d, "%s: the width changes", where);
}

void hf_check_mlp_block(hf *x, const char *family, size_t l, size_t d, char where[HF_WHERE])
{
    const pare_attn *const a = &x->m->blocks[l].attn;
    const pare_ffn *const f = &x->m->blocks[l].ffn, *const first = &x->m->blocks[0].ffn;
    const size_t groups = hf_check_heads(x, l, where);
    hf_need(x, groups == a->nheads && a->wq.rows == d && a->nheads == x->m->blocks[0].attn.nheads,
            "%s: %zu heads over %zu query columns, %s has as many as the width %zu and in every "
            "block the same",
            where, a->nheads, a->wq.rows, family, d);
    hf_check_stream(x, l, d, where);
    hf_need(x, f->kind == PARE_FFN_MLP && f->nlayers == 2 && hf_act(f->act),
            "%s: the feed-forward part is not two maps with an activation", where);
    if (x->st) return; /* there may be no maps to look at */
    hf_need(x, f->act == first->act && f->layers[0].w.rows == first->layers[0].w.rows,
            "%s: its feed-forward part differs from that of block 0", where);
}

void hf_check_lm_head(hf *x)
{
    const pare_output_head *const t = &x->m->head;
    hf_need(x,
            t->pool == PARE_POOL_NONE && !pare_has(&t->dense.w) && t->act == PARE_ACT_NONE &&
                (t->tied || pare_has(&t->out.w)) && !pare_has(&t->out.b) && !t->normalize &&
                pare_model_outputs(x->m) == x->m->embedding.vocab,
            "the head is not one map to the vocabulary without a bias");
}

const char *hf_act(pare_act act)
{
    switch (act) {
    case PARE_ACT_GELU:
        return "gelu";
    case PARE_ACT_GELU_TANH:
        return "gelu_new";
    case PARE_ACT_RELU:
        return "relu";
    case PARE_ACT_SILU:
        return "silu";
    case PARE_ACT_TANH:
        return "tanh";
    case PARE_ACT_NONE:
        break;
    }
    return NULL;
}

/* ---- what is to be written ---------------------------------------------------------------------
 */

static void no_memory(hf *x)
{
    if (!x->st) x->st = pare_no_memory(x->err);
}

void hf_config(hf *x, bool added)
{
    if (!added) no_memory(x);
}

void hf_family(hf *x, const char *type, const char *architecture)
{
    cJSON *const list = x->st ? NULL : pare_json_add_array(x->config, "architectures");
    if (!x->st && (!list || !pare_json_add_string(list, NULL, architecture))) no_memory(x);
    hf_config(x, pare_json_add_values(x->config, "model_type:s", type));
}

hf_tensor *hf_put(hf *x, const pare_weight *w, size_t rows, size_t cols, const char *fmt, size_t l)
{
    char name[128] = "";
    const char *const mark = strstr(fmt, "%zu");
    if (mark)
        snprintf(name, sizeof name, "%.*s%zu%s", (int)(mark - fmt), fmt, l, mark + 3);
    else
        snprintf(name, sizeof name, "%s", fmt);
    hf_tensor *const t = x->st ? NULL : pare_alloc(x->arena, 1, sizeof *t);
    if (!t || !(t->name = pare_strdup(x->arena, name))) {
        no_memory(x);
        return &x->nobody;
    }
    *x->end = t;
    x->end = &t->next;
    t->part[0] = *w;
    t->parts = 1;
    t->rows = rows;
    t->cols = cols;
    return t;
}

static void put_vector(hf *x, const pare_weight *w, size_t n, const char *fmt, size_t l)
{
    hf_put(x, w, 1, n, fmt, l)->vector = true;
}

void hf_put_dense(hf *x, const pare_dense *d, const char *name, size_t l, bool transposed)
{
    char full[96];
    snprintf(full, sizeof full, "%s.weight", name);
    hf_put(x, &d->w, d->w.rows, d->w.cols, full, l)->transposed = transposed;
    snprintf(full, sizeof full, "%s.bias", name);
    put_vector(x, &d->b, d->w.rows, full, l);
}

void hf_put_norm(hf *x, const pare_norm *n, size_t d, bool bias, const char *name, size_t l)
{
    char full[96];
    snprintf(full, sizeof full, "%s.weight", name);
    hf_tensor *const gain = hf_put(x, &n->gain, 1, d, full, l);
    gain->vector = true;
    gain->absent = 1;
    hf_need(x, bias || !pare_has(&n->bias), "block %zu: an RMS norm has a bias", l);
    snprintf(full, sizeof full, "%s.bias", name);
    if (bias) put_vector(x, &n->bias, d, full, l);
}

/* ---- files -------------------------------------------------------------------------------------
 */

static size_t count_of(const hf_tensor *t)
{
    return t->parts * t->rows * t->cols;
}

static double number_at(const hf_tensor *t, size_t i)
{
    const size_t all = t->parts * t->rows;
    size_t row = t->transposed ? i % all : i / t->cols;
    const size_t col = t->transposed ? i / all : i % t->cols;
    if (t->pairs) {
        const size_t head = row / t->pairs * t->pairs, at = row % t->pairs, half = t->pairs / 2;
        row = head + (at < half ? 2 * at : 2 * (at - half) + 1);
    }
    const pare_weight *const w = &t->part[row / t->rows];
    return pare_has(w) ? pare_weight_at(w, row % t->rows * t->cols + col) : t->absent;
}

/* The type that the weights of the tensor are stored in: F32 where they differ, or
 * are F64 or absent. */
static pare_dtype type_of(const hf *x, const hf_tensor *t)
{
    pare_dtype type = (pare_dtype)0;
    for (size_t i = 0; i < t->parts; i++) {
        if (!pare_has(&t->part[i])) continue;
        const pare_dtype stored = weight_stored_dtype(&t->part[i], x->m->precision);
        if (stored == PARE_F64 || (type && stored != type)) return PARE_F32;
        type = stored;
    }
    return type ? type : PARE_F32;
}

static bool describe(cJSON *root, const hf_tensor *t, pare_dtype type, size_t at)
{
    const size_t all = t->parts * t->rows;
    cJSON *const o = pare_json_add_object(root, t->name);
    cJSON *const shape = o && pare_json_add_string(o, "dtype", pare_dtype_name(type))
                             ? pare_json_add_array(o, "shape")
                             : NULL;
    bool ok = shape != NULL;
    if (ok && t->vector)
        ok = pare_json_add_size(shape, NULL, count_of(t));
    else if (ok)
        ok = pare_json_add_size(shape, NULL, t->transposed ? t->cols : all) &&
             pare_json_add_size(shape, NULL, t->transposed ? all : t->cols);
    cJSON *const range = ok ? pare_json_add_array(o, "data_offsets") : NULL;
    return range && pare_json_add_size(range, NULL, at) &&
           pare_json_add_size(range, NULL, at + count_of(t) * pare_dtype_size(type));
}

/* Length and text of the head, padded so that numbers begin at a multiple of 8. */
static pare_status write_head(const hf *x, pare_out *o)
{
    cJSON *const root = cJSON_CreateObject();
    cJSON *const meta = root ? pare_json_add_object(root, "__metadata__") : NULL;
    bool ok = meta && pare_json_add_string(meta, "format", "pt");
    size_t at = 0, n = 0;
    for (const hf_tensor *t = x->first; t && ok; t = t->next) {
        const pare_dtype type = type_of(x, t);
        ok = describe(root, t, type, at);
        at += count_of(t) * pare_dtype_size(type);
    }
    char *text = NULL;
    pare_status st =
        ok ? pare_json_print(&text, &n, x->arena, root, 0, x->err) : pare_no_memory(x->err);
    cJSON_Delete(root);
    if (st) return st;
    const uint64_t padded = (n + 7) / 8 * 8;
    st = pare_out_write(o, &padded, sizeof padded, x->err);
    if (!st) st = pare_out_write(o, text, n, x->err);
    return st ? st : pare_out_write(o, "        ", padded - n, x->err);
}

static pare_status write_model(const hf *x, const char *path, bool overwrite)
{
    pare_out *o = NULL;
    pare_status st = pare_out_open(&o, path, overwrite, x->err);
    if (!st) st = write_head(x, o);
    for (const hf_tensor *t = x->first; t && !st; t = t->next) {
        enum { SOME = 2048 };
        float part[SOME], stored[SOME];
        const pare_dtype type = type_of(x, t);
        for (size_t from = 0, n; from < count_of(t) && !st; from += n) {
            n = count_of(t) - from < SOME ? count_of(t) - from : SOME;
            for (size_t i = 0; i < n; i++) part[i] = (float)number_at(t, from + i);
            const pare_weight some = {PARE_F32, 1, n, part};
            weight_store(stored, type, &some);
            st = pare_out_write(o, stored, n * pare_dtype_size(type), x->err);
        }
    }
    if (!st) return pare_out_commit(o, x->err);
    pare_out_abort(o);
    return st;
}

static pare_status write_config(const hf *x, const char *path, bool overwrite)
{
    pare_out *o = NULL;
    char *text = NULL;
    size_t n = 0;
    pare_status st = pare_json_print(&text, &n, x->arena, x->config, 2, x->err);
    if (!st) st = pare_out_open(&o, path, overwrite, x->err);
    if (!st) st = pare_out_write(o, text, n, x->err);
    if (!st) st = pare_out_write(o, "\n", 1, x->err);
    if (!st) return pare_out_commit(o, x->err);
    pare_out_abort(o);
    return st;
}

static pare_status write_folder(hf *x, const char *folder, bool overwrite)
{
    char *const config = pare_sprintf(x->arena, "%s/config.json", folder);
    char *const model = pare_sprintf(x->arena, "%s/model.safetensors", folder);
    if (!config || !model) return pare_no_memory(x->err);
    const bool made = mkdir(folder, 0777) == 0;
    if (!made && (errno != EEXIST || !overwrite))
        return pare_fail(x->err, PARE_ERR_IO, "%s: %s", folder,
                         errno == EEXIST ? "exists, and may not be overwritten" : strerror(errno));
    pare_status st = write_config(x, config, overwrite);
    if (!st) st = write_model(x, model, overwrite);
    if (st && made) {
        unlink(config);
        rmdir(folder);
    }
    return st;
}

/* ---- which family ------------------------------------------------------------------------------
 */

static void choose(hf *x)
{
    const pare_model *const m = x->m;
    const pare_position_kind pos = m->embedding.pos.kind;
    hf_need(x, m->embedding.ids && !pare_has(&m->embedding.map.w),
            "the model does not begin with ids alone");
    hf_need(x, m->nblocks > 0, "there are no blocks");
    if (x->st) return;
    if (pos == PARE_POS_ROTARY)
        hf_llama(x);
    else if (pos == PARE_POS_LEARNED && m->pattern.kind == PARE_CAUSAL)
        hf_gpt2(x);
    else if (pos == PARE_POS_LEARNED && m->pattern.kind == PARE_FULL)
        hf_bert(x);
    else
        hf_need(x, false, "positions %s under the pattern %s are none of GPT-2, Llama and BERT",
                pare_position_name(pos), pare_pattern_name(m->pattern.kind));
}

/* A folder has a row of the embedding for each token. */
pare_status pare_export_hf(const pare_model *m, const char *folder, bool overwrite, pare_err *err)
{
    pare_model *owned;
    const pare_status whole = pare_model_whole(&m, &owned, err);
    hf x = {.m = m, .eps = -1, .err = err, .arena = pare_arena_new()};
    x.config = cJSON_CreateObject();
    x.end = &x.first;
    if (!x.arena || !x.config) no_memory(&x);
    if (!x.st) x.st = whole;
    if (!x.st) choose(&x);
    const pare_dtype p = pare_model_precision(m);
    const char *const name = p == PARE_F16 ? "float16" : p == PARE_BF16 ? "bfloat16" : "float32";
    if (!x.st) hf_config(&x, pare_json_add_values(x.config, "torch_dtype:s", name));
    if (!x.st) x.st = write_folder(&x, folder, overwrite);
    cJSON_Delete(x.config);
    pare_arena_free(x.arena);
    pare_model_free(owned);
    return x.st;
}
