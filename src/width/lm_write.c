/* lm_write.c - from the form of lm.h back to a model. */
#include "linalg/matrix.h"
#include "lm.h"
#include <string.h>

enum { ROWS = 1024 }; /* of an embedding that are in f64 at a time */

/* ---- norms and skips ------------------------------------------------------------------------ */

static pare_weight copy_weight(weight_writer *o, const pare_weight *v)
{
    pare_weight c = {0};
    if (!pare_has(v) || o->w.st) return c;
    const size_t size = pare_dtype_size(v->dtype);
    c = *v;
    void *const data = pare_work_alloc(&o->w, v->rows * v->cols, size);
    if (data) memcpy(data, v->data, v->rows * v->cols * size);
    c.data = data;
    return c;
}

static pare_dense copy_dense(weight_writer *o, const pare_dense *d)
{
    return (pare_dense){copy_weight(o, &d->w), copy_weight(o, &d->b)};
}

static pare_norm copy_norm(weight_writer *o, const pare_norm *n)
{
    pare_norm c = *n;
    c.gain = copy_weight(o, &n->gain);
    c.bias = copy_weight(o, &n->bias);
    c.offset = copy_weight(o, &n->offset);
    c.mean = copy_weight(o, &n->mean);
    c.var = copy_weight(o, &n->var);
    return c;
}

static pare_norm stored_norm(weight_writer *o, const lm_norm *n, size_t d)
{
    if (n->raw) return copy_norm(o, n->raw);
    if (!n->present) return (pare_norm){0};
    return (pare_norm){.kind = PARE_NORM_RMS,
                       .eps = n->eps,
                       .divisor = n->divisor,
                       .shift = n->shift,
                       .offset = n->offset ? writer_vector(o, n->offset, d) : (pare_weight){0}};
}

static pare_skip stored_skip(weight_writer *o, const lm_skip *s)
{
    if (s->kind == PARE_SKIP_DENSE) return writer_skip(o, &s->w);
    return (pare_skip){.kind = s->kind};
}

/* ---- attention ------------------------------------------------------------------------------ */

/* What there is, and where the rows of every group begin. */
typedef struct layout {
    lm_shape all;
    size_t freqs;               /* that are stored */
    size_t *key, *value, *freq; /* of each group */
} layout;

static layout lay_out(weight_writer *o, const lm_attn *a)
{
    layout l = {.key = pare_work_alloc(&o->w, 3 * a->nkeys, sizeof *l.key)};
    if (o->w.st) return l;
    lm_shape_attn(&l.all, a);
    l.freqs = l.all.planes;
    l.value = l.key + a->nkeys;
    l.freq = l.value + a->nkeys;
    for (size_t i = 1; i < a->nkeys; i++) {
        l.key[i] = l.key[i - 1] + a->keys[i - 1].wk.rows;
        l.value[i] = l.value[i - 1] + a->keys[i - 1].wv.rows;
        l.freq[i] = l.freq[i - 1] + a->keys[i - 1].planes;
    }
    return l;
}

static void put_freqs(weight_writer *o, pare_attn *to, const lm_attn *a, layout *l)
{
    const lm_keys *const first = &a->keys[0];
    bool same = true; /* then all groups share one list in the file */
    for (size_t i = 1; same && i < a->nkeys; i++)
        same = a->keys[i].planes == first->planes &&
               memcmp(a->keys[i].freqs, first->freqs, first->planes * sizeof(double)) == 0;
    if (same) {
        l->freqs = a->keys[0].planes;
        memset(l->freq, 0, a->nkeys * sizeof *l->freq);
    }
    if (!l->freqs) return;
    weight_writer exact = {o->w, PARE_F64}; /* an angle grows with the position */
    to->freqs = writer_reserve(&exact, 1, l->freqs);
    for (size_t i = 0; i < a->nkeys; i++) {
        const pare_mat f = pare_mat_of(a->keys[i].freqs, 1, a->keys[i].planes);
        writer_put(&exact, &to->freqs, 0, l->freq[i], &f);
    }
    o->w.st = exact.w.st;
}

static void put_keys(weight_writer *o, pare_attn *to, const lm_attn *a, const layout *l)
{
    for (size_t i = 0; !o->w.st && i < a->nkeys; i++) {
        const lm_keys *const k = &a->keys[i];
        const pare_mat bk = pare_mat_of(k->bk, 1, k->wk.rows);
        const pare_mat bv = pare_mat_of(k->bv, 1, k->wv.rows);
        writer_put(o, &to->wk, l->key[i], 0, &k->wk);
        writer_put(o, &to->wv, l->value[i], 0, &k->wv);
        if (l->all.bk) writer_put(o, &to->bk, 0, l->key[i], &bk);
        if (l->all.bv) writer_put(o, &to->bv, 0, l->value[i], &bv);
    }
}

static void put_heads(weight_writer *o, pare_attn *to, const lm_attn *a, const layout *l)
{
    size_t q = 0, out = 0;
    for (size_t i = 0; !o->w.st && i < a->nheads; i++) {
        const lm_head *const h = &a->heads[i];
        const pare_mat bq = pare_mat_of(h->bq, 1, h->wq.rows);
        to->heads[i] = (pare_head){.dk = h->wq.rows,
                                   .dv = h->wo.cols,
                                   .q = q,
                                   .k = l->key[h->keys],
                                   .v = l->value[h->keys],
                                   .o = out,
                                   .scale = h->scale,
                                   .freq = a->keys[h->keys].planes ? l->freq[h->keys] : 0,
                                   .planes = a->keys[h->keys].planes};
        writer_put(o, &to->wq, q, 0, &h->wq);
        if (pare_has(&to->wo)) writer_put(o, &to->wo, 0, out, &h->wo);
        if (l->all.bq) writer_put(o, &to->bq, 0, q, &bq);
        q += h->wq.rows;
        out += h->wo.cols;
    }
}

bool lm_has_identity_wo(const lm_attn *a)
{
    size_t first = 0;
    for (size_t i = 0; i < a->nheads; i++) {
        if (!is_identity_wo(&a->heads[i].wo, first)) return false;
        first += a->heads[i].wo.cols;
    }
    return first == a->dout;
}

static pare_attn stored_attn(weight_writer *o, const lm_attn *a)
{
    pare_attn to = {.kind = PARE_ATTN_NONE};
    if (!a->present || o->w.st) return to;
    to = (pare_attn){.kind = PARE_ATTN_EXACT, .din = a->din, .dout = a->dout, .nheads = a->nheads};
    to.heads = pare_work_alloc(&o->w, a->nheads, sizeof *to.heads);
    layout l = lay_out(o, a);
    if (o->w.st) return to;
    to.wq = writer_reserve(o, l.all.q, a->din);
    to.wk = writer_reserve(o, l.all.k, a->din);
    to.wv = writer_reserve(o, l.all.v, a->din);
    if (!lm_has_identity_wo(a)) to.wo = writer_reserve(o, a->dout, l.all.o);
    if (l.all.bq) to.bq = writer_reserve(o, 1, l.all.q);
    if (l.all.bk) to.bk = writer_reserve(o, 1, l.all.k);
    if (l.all.bv) to.bv = writer_reserve(o, 1, l.all.v);
    put_freqs(o, &to, a, &l);
    put_keys(o, &to, a, &l);
    put_heads(o, &to, a, &l);
    to.bo = writer_vector(o, a->bo, a->dout);
    to.in_norm = stored_norm(o, &a->in, a->din);
    to.out_norm = stored_norm(o, &a->out, a->dout);
    to.skip = stored_skip(o, &a->skip);
    return to;
}

/* ---- feed-forward --------------------------------------------------------------------------- */

static pare_ffn stored_ffn(weight_writer *o, const lm_ffn *f)
{
    pare_ffn to = {.kind = PARE_FFN_NONE};
    if (!f->present || o->w.st) return to;
    to = (pare_ffn){.kind = f->gated ? PARE_FFN_GATED : PARE_FFN_MLP,
                    .din = f->din,
                    .dout = f->dout,
                    .nlayers = f->gated ? 3 : 2,
                    .act = f->act};
    to.layers = pare_work_alloc(&o->w, to.nlayers, sizeof *to.layers);
    if (o->w.st) return to;
    to.layers[0] = writer_dense(o, &f->w1, f->b1);
    if (f->gated) to.layers[1] = writer_dense(o, &f->w3, f->b3);
    to.layers[to.nlayers - 1] = writer_dense(o, &f->w2, f->b2);
    to.in_norm = stored_norm(o, &f->in, f->din);
    to.out_norm = stored_norm(o, &f->out, f->dout);
    to.skip = stored_skip(o, &f->skip);
    return to;
}

pare_block lm_stored_block(weight_writer *o, const lm_block *b)
{
    pare_block to = {.attn = stored_attn(o, &b->attn)};
    to.ffn = stored_ffn(o, &b->ffn);
    return to;
}

/* ---- embedding and head ---------------------------------------------------------------------- */

/* from * map^T row block by row block: a table in other coordinates. b may be NULL. */
static pare_weight mapped_rows(pare_work *w, weight_writer *o, const pare_weight *from,
                               const pare_mat *map, const double *b)
{
    pare_weight to = writer_reserve(o, from->rows, map->rows);
    for (size_t r = 0; !o->w.st && !w->st && r < from->rows; r += ROWS) {
        const pare_mark mark = pare_arena_mark(w->arena);
        const size_t n = from->rows - r < ROWS ? from->rows - r : ROWS;
        const pare_mat x = read_matrix_part(w, from, r, 0, n, from->cols);
        const pare_mat y = affine_rows(w, &x, map, b);
        if (!w->st) writer_put(o, &to, r, 0, &y);
        pare_arena_reset(w->arena, mark);
    }
    return to;
}

static bool is_identity(const pare_mat *m)
{
    if (m->rows != m->cols) return false;
    for (size_t i = 0; i < m->rows; i++)
        for (size_t j = 0; j < m->cols; j++)
            if (!(pare_row(m, i)[j] - (i == j) <= 1e-12 && pare_row(m, i)[j] - (i == j) >= -1e-12))
                return false;
    return true;
}

bool lm_foldable(const pare_embedding *s)
{
    const pare_position_kind k = s->pos.kind;
    if (k == PARE_POS_NONE || k == PARE_POS_ROTARY) return true;
    return pare_has(&s->map.w) ? s->pos.after_map : k == PARE_POS_LEARNED;
}

/* Can the embedding be narrowed and still serve the head? */
static bool can_narrow(const pare_embedding *s)
{
    return s->ids && !pare_has(&s->map.w) && lm_foldable(s);
}

/* The embedding in the coordinates of `first`. */
static void put_embedding(pare_work *w, lm_out *o, const lm_basis *first, const pare_mat *embed)
{
    const lm *const m = o->m;
    const pare_embedding *const s = &m->m->embedding;
    pare_embedding *const to = &o->model->embedding;
    /* W^T, or W^T C: from the output of the embedding to the new point 0. */
    pare_mat basis = mat_copy(w, lm_write_basis(first));
    if (m->centered || s->norm.kind == PARE_NORM_LAYER) lm_center_columns(w, &basis);
    const pare_mat in = mat_transpose(w, &basis);
    const bool learned = s->pos.kind == PARE_POS_LEARNED, behind = lm_foldable(s);
    const pare_mat map =
        pare_has(&s->map.w) ? read_matrix(w, &s->map.w) : mat_identity(w, s->width);
    double *const bias = read_vector(w, &s->map.b, 0, map.rows);
    const pare_mat all = mat_mul(w, &in, false, &map, false);
    double *const b = mat_vec(w, &in, false, bias, NULL);
    if (w->st) return;
    const lm_norm norm = lm_project_norm(w, &m->embedding_norm, first);
    to->norm = stored_norm(&o->writer, &norm, in.rows);
    to->pos = s->pos;
    to->pos.table = (pare_weight){0};
    if (learned && behind) to->pos.table = mapped_rows(w, &o->writer, &s->pos.table, &in, NULL);
    if (learned && !behind) to->pos.table = copy_weight(&o->writer, &s->pos.table);
    if (embed && can_narrow(s)) { /* tied: E embed, then d x e */
        const pare_mat t = mat_transpose(w, embed), back = mat_mul(w, &in, false, embed, false);
        if (w->st) return;
        to->width = embed->cols;
        to->table = mapped_rows(w, &o->writer, &s->table, &t, NULL);
        if (!is_identity(&back)) to->map.w = writer_matrix(&o->writer, &back);
        to->pos.after_map = pare_has(&to->map.w) || s->pos.after_map;
    } else if (s->ids && behind && !embed) {
        to->width = in.rows;
        to->table = mapped_rows(w, &o->writer, &s->table, &all, b);
    } else {
        if (s->ids) to->table = copy_weight(&o->writer, &s->table);
        to->map = writer_dense(&o->writer, &all, b);
    }
}

/* A U and the shift: the affine map from the last point to a reader in the old coordinates. */
static pare_mat head_map(pare_work *w, const lm *m, const pare_mat *u, double **shift)
{
    pare_mat a = mat_identity(w, u->rows);
    *shift = vec_zeros(w, u->rows);
    lm_fold_in(w, &a, *shift, &m->head_input);
    return mat_mul(w, &a, false, u, false);
}

/* The output head in the coordinates of `last`. */
static void put_head(pare_work *w, lm_out *o, const lm_basis *last, const pare_mat *embed)
{
    const lm *const m = o->m;
    const pare_output_head *const t = &m->m->head;
    const pare_weight *const from = t->tied ? &m->m->embedding.table : &t->out.w;
    pare_output_head *const to = &o->model->head;
    const pare_mat *const u = &last->read;
    const lm_norm norm = lm_project_norm(w, &m->head_norm, last);
    to->norm = stored_norm(&o->writer, &norm, u->cols);
    to->pool = t->pool;
    to->act = t->act;
    to->normalize = t->normalize;
    if (pare_has(&t->dense.w)) {
        pare_mat map = read_matrix(w, &t->dense.w);
        double *const b = read_vector(w, &t->dense.b, 0, t->dense.w.rows);
        lm_fold_in(w, &map, b, &m->head_input);
        const pare_mat cut = mat_mul(w, &map, false, u, false);
        if (!w->st) to->dense = writer_dense(&o->writer, &cut, b);
        to->out = (pare_dense){copy_weight(&o->writer, from), copy_weight(&o->writer, &t->out.b)};
        return;
    }
    double *shift;
    const pare_mat a = head_map(w, m, u, &shift);
    if (t->tied && embed) {
        const pare_mat dense = mat_mul(w, embed, true, &a, false);
        double *const b = mat_vec(w, embed, true, shift, NULL);
        if (w->st) return;
        to->tied = true;
        to->out.b = copy_weight(&o->writer, &t->out.b);
        if (is_identity(&dense) && all_zero(b, dense.rows)) return;
        to->dense = writer_dense(&o->writer, &dense, b);
    } else if (pare_has(from)) { /* a large matrix: row block by row block */
        const pare_mat at = mat_transpose(w, &a);
        double *const bias = read_vector(w, &t->out.b, 0, from->rows);
        for (size_t i = 0; !w->st && !all_zero(shift, u->rows) && i < from->rows; i++)
            for (size_t j = 0; j < from->cols; j++)
                bias[i] += pare_weight_at(from, i * from->cols + j) * shift[j];
        if (w->st) return;
        to->out.w = mapped_rows(w, &o->writer, from, &at, NULL);
        to->out.b = writer_vector(&o->writer, bias, from->rows);
    } else if (!w->st) {
        /* Rows of the stream are the outputs and stay that: the change to the old coordinates is a dense
         * layer, not an output map of scores. */
        to->dense = writer_dense(&o->writer, &a, shift);
    }
}

pare_mat lm_embed_basis(pare_work *w, const lm *m, const lm_basis *first)
{
    const pare_mat *const from = lm_write_basis(first);
    const size_t d = from->rows, n = from->cols + (m->centered && from->cols < d);
    if (!m->centered || n == from->cols) return mat_copy(w, from);
    /* Directions of a centered stream are at right angles to the mean's, up to rounding: taken away
     * before the columns are made orthonormal again. */
    pare_mat all = mat_zeros(w, d, n), r = mat_zeros(w, n, n), q = mat_zeros(w, d, n);
    for (size_t i = 0; !w->st && i < d; i++) {
        pare_row_mut(&all, i)[0] = 1;
        memcpy(pare_row_mut(&all, i) + 1, pare_row(from, i), from->cols * sizeof(double));
    }
    if (!w->st) w->st = pare_qr(&q, &r, &all, w->arena, w->err);
    return q;
}

void lm_write_ends(pare_work *w, lm_out *o, const lm_basis *first, const lm_basis *last,
                   const pare_mat *embed)
{
    if (w->st) return;
    const pare_embedding *const s = &o->m->m->embedding;
    const pare_output_head *const t = &o->m->m->head;
    pare_embedding *const embedding = &o->model->embedding;
    pare_output_head *const head = &o->model->head;
    if (first) {
        embedding->ids = s->ids;
        embedding->width = s->width;
        embedding->vocab = s->vocab;
        const pare_mat wide = embed && !can_narrow(s) ? mat_identity(w, s->width) : (pare_mat){0};
        put_embedding(w, o, first, embed);
        put_head(w, o, last, wide.v ? &wide : embed);
    } else {
        *embedding = *s;
        embedding->table = copy_weight(&o->writer, &s->table);
        embedding->pos.table = copy_weight(&o->writer, &s->pos.table);
        embedding->map = copy_dense(&o->writer, &s->map);
        embedding->norm = copy_norm(&o->writer, &s->norm);
        *head = *t;
        head->norm = copy_norm(&o->writer, &t->norm);
        head->dense = copy_dense(&o->writer, &t->dense);
        head->out = copy_dense(&o->writer, &t->out);
    }
    if (!w->st) w->st = o->writer.w.st;
}

/* ---- the model ------------------------------------------------------------------------------ */

void lm_write_begin(pare_work *w, lm_out *o, const lm *m, pare_dtype dtype)
{
    *o = (lm_out){.m = m, .dtype = dtype};
    if (w->st) return;
    w->st = pare_model_new(&o->model, w->err);
    if (w->st) return;
    pare_model *const to = o->model;
    o->writer = (weight_writer){{to->arena, NULL, w->err, PARE_OK}, memory_dtype(m->m, dtype)};
    to->name = pare_strdup(to->arena, m->m->name ? m->m->name : "width");
    to->blocks = pare_alloc(to->arena, m->m->nblocks, sizeof *to->blocks);
    if (!to->name || !to->blocks) w->st = pare_no_memory(w->err);
    if (w->st) return;
    to->nblocks = m->m->nblocks;
    to->pattern = m->m->pattern;
    to->context = m->m->context;
    to->tokenizer = m->m->tokenizer;
    to->vocab_bytes = m->m->vocab_bytes;
    if (!m->m->vocab) return;
    uint8_t *const vocab = pare_alloc(to->arena, m->m->vocab_bytes, 1);
    if (!vocab)
        w->st = pare_no_memory(w->err);
    else
        memcpy(vocab, m->m->vocab, m->m->vocab_bytes);
    to->vocab = vocab;
}

void lm_write_block(pare_work *w, lm_out *o, size_t b, const lm_block *block)
{
    if (w->st) return;
    o->model->blocks[b] = lm_stored_block(&o->writer, block);
    w->st = o->writer.w.st;
}

void lm_write_attn(pare_work *w, lm_out *o, size_t b, const lm_attn *a)
{
    if (w->st) return;
    o->model->blocks[b].attn = stored_attn(&o->writer, a);
    w->st = o->writer.w.st;
}

void lm_write_ffn(pare_work *w, lm_out *o, size_t b, const lm_ffn *f)
{
    if (w->st) return;
    o->model->blocks[b].ffn = stored_ffn(&o->writer, f);
    w->st = o->writer.w.st;
}

pare_model *lm_write_finish(pare_work *w, lm_out *o)
{
    if (!w->st) w->st = pare_model_round(o->model, o->m->m, o->dtype, w->err);
    if (!w->st) w->st = pare_model_check(o->model, w->err);
    if (w->st) {
        pare_model_free(o->model);
        o->model = NULL;
    }
    return o->model;
}
