/* onnx_graph.c - nodes and constants of an ONNX graph, and the file. Field numbers are those of
 * onnx.proto. Weights are written straight from where they lie: memory holds the nodes and nothing
 * else. */
#include "onnx.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *pare_version(void);

enum { IR_VERSION = 8, IR_VERSION_INT4 = 10 };
static const uint64_t MOST = 0x7fffffff; /* a protobuf message is shorter than 2 GiB */

struct onnx_tensor {
    const onnx_tensor *next;
    const char *name;
    int type;
    size_t ndim;
    int64_t dims[2];
    size_t count;
    const int64_t *whole; /* whole numbers ... */
    pare_weight w;        /* ... or others ... */
    bool transposed;
    const pare_int_groups *ints; /* ... or the integers of a matrix */
};

/* ---- failures -------------------------------------------------------------------------------- */

void onnx_fail(onnx *g, pare_status st, const char *fmt, ...)
{
    char words[400];
    va_list args;
    if (g->st) return;
    va_start(args, fmt);
    vsnprintf(words, sizeof words, fmt, args);
    va_end(args);
    g->st = pare_fail(g->err, st, "%s", words);
}

void onnx_no_memory(onnx *g)
{
    if (!g->st) g->st = pare_no_memory(g->err);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static void add_node(onnx *g, const char *op, const value *in, size_t n, const char *out,
                     const attribute *a)
{
    wire w = {0};
    for (size_t i = 0; i < n; i++) wire_text(&w, 1, in[i]);
    wire_text(&w, 2, out);
    wire_text(&w, 3, out);
    wire_text(&w, 4, op);
    if (a->name) {
        wire field = {0};
        wire_text(&field, 1, a->name);
        for (size_t i = 0; i < a->n; i++) wire_int(&field, a->list ? 8 : 3, (uint64_t)a->v[i]);
        wire_int(&field, 20, a->list ? 7 : 2); /* INTS, INT */
        wire_message(&w, 5, &field);
        wire_free(&field);
    }
    wire_message(&g->nodes, 1, &w);
    wire_free(&w);
    if (g->nodes.failed) onnx_no_memory(g);
}

value onnx_node(onnx *g, const char *op, const value *in, size_t n, attribute a)
{
    for (size_t i = 0; i < n && !g->st; i++) PARE_ASSERT(in[i]);
    if (g->st) return NULL;
    char *const out = pare_sprintf(g->arena, "%s.%zu", op, g->count++);
    if (!out) {
        onnx_no_memory(g);
        return NULL;
    }
    add_node(g, op, in, n, out, &a);
    return g->st ? NULL : out;
}

value onnx_op1(onnx *g, const char *op, value a)
{
    return onnx_node(g, op, &a, 1, NO_ATTRIBUTE);
}

value onnx_op2(onnx *g, const char *op, value a, value b)
{
    const value in[] = {a, b};
    return onnx_node(g, op, in, 2, NO_ATTRIBUTE);
}

value onnx_op3(onnx *g, const char *op, value a, value b, value c)
{
    const value in[] = {a, b, c};
    return onnx_node(g, op, in, 3, NO_ATTRIBUTE);
}

value onnx_reduce(onnx *g, const char *op, value a, int64_t axis)
{
    if (g->opset < 18) return onnx_node(g, op, &a, 1, NUMBERS("axes", 1, axis));
    return onnx_op2(g, op, a, onnx_numbers(g, 1, &axis));
}

void onnx_rename(onnx *g, value from, const char *to)
{
    if (!g->st) add_node(g, "Identity", &from, 1, to, &NO_ATTRIBUTE);
}

/* ---- constants ------------------------------------------------------------------------------- */

static onnx_tensor *new_tensor(onnx *g, const char *name)
{
    if (g->st) return NULL;
    onnx_tensor *const t = pare_alloc(g->arena, 1, sizeof *t);
    if (!t || !name) {
        onnx_no_memory(g);
        return NULL;
    }
    t->name = name;
    t->next = g->tensors;
    g->tensors = t;
    return t;
}

static value find(const onnx *g, const char *name)
{
    for (const onnx_tensor *t = g->tensors; t; t = t->next)
        if (strcmp(t->name, name) == 0) return t->name;
    return NULL;
}

/* One constant for a name. */
static value named_numbers(onnx *g, const char *name, size_t ndim, size_t n, const int64_t *v)
{
    const value known = g->st ? NULL : find(g, name);
    if (known || g->st) return known;
    onnx_tensor *const t = new_tensor(g, pare_strdup(g->arena, name));
    int64_t *const copy = t ? pare_alloc(g->arena, n, sizeof *copy) : NULL;
    if (!copy) {
        onnx_no_memory(g);
        return NULL;
    }
    memcpy(copy, v, n * sizeof *copy);
    t->type = ONNX_INT64;
    t->ndim = ndim;
    t->dims[0] = (int64_t)n;
    t->count = n;
    t->whole = copy;
    return t->name;
}

static value whole_numbers(onnx *g, const char *kind, size_t ndim, size_t n, const int64_t *v)
{
    char name[160];
    size_t at = (size_t)snprintf(name, sizeof name, "%s", kind);
    for (size_t i = 0; i < n && at < sizeof name; i++)
        at += (size_t)snprintf(name + at, sizeof name - at, ".%lld", (long long)v[i]);
    PARE_ASSERT(at < sizeof name);
    return named_numbers(g, name, ndim, n, v);
}

value onnx_list(onnx *g, const char *name, size_t n, const int64_t *v)
{
    return named_numbers(g, name, 1, n, v);
}

value onnx_numbers(onnx *g, size_t n, const int64_t *v)
{
    return whole_numbers(g, "numbers", 1, n, v);
}

value onnx_number(onnx *g, int64_t v)
{
    return whole_numbers(g, "number", 0, 1, &v);
}

static value stored(onnx *g, const char *name, const pare_weight *w, int type, size_t ndim,
                    bool transposed)
{
    onnx_tensor *const t = new_tensor(g, name);
    if (!t) return NULL;
    t->type = type;
    t->ndim = ndim;
    t->dims[0] = (int64_t)(ndim < 2 || transposed ? w->cols : w->rows);
    t->dims[1] = (int64_t)(transposed ? w->rows : w->cols);
    t->count = w->rows * w->cols;
    t->w = *w;
    t->transposed = transposed;
    return t->name;
}

static value own_reals(onnx *g, const double *v, size_t n, int type, size_t ndim)
{
    double *const copy = g->st ? NULL : pare_alloc(g->arena, n, sizeof *copy);
    if (!copy) {
        onnx_no_memory(g);
        return NULL;
    }
    memcpy(copy, v, n * sizeof *copy);
    const pare_weight w = {PARE_F64, 1, n, copy};
    return stored(g, pare_sprintf(g->arena, "constant.%zu", g->count++), &w, type, ndim, false);
}

value onnx_real(onnx *g, double v)
{
    return own_reals(g, &v, 1, ONNX_FLOAT, 0);
}

value onnx_vector(onnx *g, const double *v, size_t n, int type)
{
    return own_reals(g, v, n, type, 1);
}

value onnx_weight(onnx *g, const char *name, const pare_weight *w, onnx_form form)
{
    const value known = g->st ? NULL : find(g, name);
    if (known || g->st) return known;
    return stored(g, pare_strdup(g->arena, name), w, ONNX_FLOAT, form == ONNX_ROW ? 1 : 2,
                  form == ONNX_TRANSPOSED);
}

value onnx_integers(onnx *g, const char *name, const pare_int_groups *ints)
{
    const size_t groups = (ints->cols + ints->group - 1) / ints->group;
    onnx_tensor *const t = new_tensor(g, pare_strdup(g->arena, name));
    if (!t) return NULL;
    t->type = ints->bits > 4 ? ONNX_INT8 : ints->offset ? ONNX_UINT4 : ONNX_INT4;
    t->ndim = 2;
    t->dims[0] = (int64_t)(ints->rows * groups);
    t->dims[1] = (int64_t)ints->group;
    t->count = ints->rows * groups * ints->group;
    t->ints = ints;
    return t->name;
}

/* ---- what goes in and comes out ----------------------------------------------------------------
 */

void onnx_value(onnx *g, onnx_end end, const char *name, int type, const dimension *d, size_t n)
{
    wire shape = {0}, tensor = {0}, whole = {0}, info = {0};
    if (g->st) return;
    for (size_t i = 0; i < n; i++) {
        wire dim = {0};
        if (d[i].word)
            wire_text(&dim, 2, d[i].word);
        else
            wire_int(&dim, 1, d[i].n);
        wire_message(&shape, 1, &dim);
        wire_free(&dim);
    }
    wire_int(&tensor, 1, (uint64_t)type);
    wire_message(&tensor, 2, &shape);
    wire_message(&whole, 1, &tensor);
    wire_text(&info, 1, name);
    wire_message(&info, 2, &whole);
    wire_message(&g->ends, (unsigned)end, &info);
    if (g->ends.failed) onnx_no_memory(g);
    wire_free(&shape);
    wire_free(&tensor);
    wire_free(&whole);
    wire_free(&info);
}

/* ---- the file ----------------------------------------------------------------------------------
 */

/* Of all numbers. */
static uint64_t bytes_of(const onnx_tensor *t)
{
    const bool four = t->type == ONNX_INT4 || t->type == ONNX_UINT4;
    if (four || t->type == ONNX_INT8) return four ? (t->count + 1) / 2 : t->count;
    return t->count * (t->type == ONNX_FLOAT ? 4 : 8);
}

/* Everything of a constant but its numbers, which are the last field. */
static void tensor_head(wire *w, const onnx_tensor *t)
{
    for (size_t i = 0; i < t->ndim; i++) wire_int(w, 1, (uint64_t)t->dims[i]);
    wire_int(w, 2, (uint64_t)t->type);
    wire_text(w, 8, t->name);
    wire_head(w, 9, bytes_of(t));
}

static double number_at(const onnx_tensor *t, size_t i)
{
    if (!t->transposed) return pare_weight_at(&t->w, i);
    return pare_weight_at(&t->w, i % t->w.rows * t->w.cols + i / t->w.rows);
}

/* Of all groups one after the other; 0 behind the end of a row. */
static int integer_at(const onnx_tensor *t, size_t i)
{
    const pare_int_groups *const g = t->ints;
    const size_t wide = (size_t)t->dims[1] * ((g->cols + g->group - 1) / g->group), j = i % wide;
    return i < t->count && j < g->cols ? g->q[i / wide * g->cols + j] : 0;
}

static pare_status write_integers(pare_out *o, const onnx_tensor *t, pare_err *err)
{
    uint8_t part[4096];
    const uint64_t bytes = bytes_of(t);
    pare_status st = PARE_OK;
    for (uint64_t from = 0; from < bytes && !st; from += sizeof part) {
        const size_t n = (size_t)(bytes - from < sizeof part ? bytes - from : sizeof part);
        for (size_t i = 0; i < n; i++) {
            const size_t at = (size_t)from + i;
            part[i] = (uint8_t)(t->type == ONNX_INT8 ? integer_at(t, at)
                                                     : (integer_at(t, 2 * at) & 15) |
                                                           (integer_at(t, 2 * at + 1) & 15) << 4);
        }
        st = pare_out_write(o, part, n, err);
    }
    return st;
}

static pare_status write_numbers(pare_out *o, const onnx_tensor *t, pare_err *err)
{
    enum { SOME = 1024 };
    union {
        float f[SOME];
        double d[SOME];
    } part;
    if (t->ints) return write_integers(o, t, err);
    if (t->whole) return pare_out_write(o, t->whole, t->count * sizeof *t->whole, err);
    pare_status st = PARE_OK;
    for (size_t from = 0; from < t->count && !st; from += SOME) {
        const size_t left = t->count - from, n = left < SOME ? left : SOME;
        for (size_t i = 0; i < n; i++) {
            if (t->type == ONNX_FLOAT)
                part.f[i] = (float)number_at(t, from + i);
            else
                part.d[i] = number_at(t, from + i);
        }
        st = pare_out_write(o, &part, n * (t->type == ONNX_FLOAT ? sizeof(float) : sizeof(double)),
                            err);
    }
    return st;
}

static pare_status write_tensor(pare_out *o, const onnx_tensor *t, pare_err *err)
{
    wire head = {0}, field = {0};
    tensor_head(&head, t);
    wire_head(&field, 5, head.used + bytes_of(t));
    pare_status st = head.failed || field.failed ? pare_no_memory(err) : PARE_OK;
    if (!st) st = pare_out_write(o, field.data, field.used, err);
    if (!st) st = pare_out_write(o, head.data, head.used, err);
    wire_free(&head);
    wire_free(&field);
    return st ? st : write_numbers(o, t, err);
}

/* Bytes of all constants in the graph. */
static uint64_t tensor_bytes(onnx *g)
{
    uint64_t sum = 0;
    for (const onnx_tensor *t = g->tensors; t && !g->st; t = t->next) {
        wire head = {0}, field = {0};
        tensor_head(&head, t);
        const uint64_t whole = head.used + bytes_of(t);
        wire_head(&field, 5, whole);
        sum += field.used + whole;
        if (head.failed || field.failed) onnx_no_memory(g);
        wire_free(&head);
        wire_free(&field);
    }
    return sum;
}

pare_status onnx_write(onnx *g, const char *graph_name, const char *path, bool overwrite,
                       uint64_t *bytes)
{
    wire head = {0}, name = {0};
    pare_out *o = NULL;
    wire_text(&name, 2, graph_name);
    const uint64_t constants = tensor_bytes(g);
    const uint64_t graph = constants + g->nodes.used + g->ends.used + name.used;
    wire opset = {0};
    wire_int(&head, 1, g->opset > ONNX_OPSET ? IR_VERSION_INT4 : IR_VERSION);
    wire_text(&head, 2, "pare");
    wire_text(&head, 3, pare_version());
    wire_int(&opset, 2, (uint64_t)(g->opset ? g->opset : ONNX_OPSET));
    wire_message(&head, 8, &opset);
    wire_head(&head, 7, graph);
    wire_free(&opset);
    if (head.failed || name.failed) onnx_no_memory(g);
    if (graph + head.used > MOST)
        onnx_fail(g, PARE_ERR_INPUT,
                  "the model has %.1f GB as f32, a file of ONNX holds less than 2 GiB",
                  1e-9 * (double)graph);
    pare_status st = g->st;
    if (!st) st = pare_out_open(&o, path, overwrite, g->err);
    if (!st) {
        st = pare_out_write(o, head.data, head.used, g->err);
        if (!st) st = pare_out_write(o, g->nodes.data, g->nodes.used, g->err);
        if (!st) st = pare_out_write(o, name.data, name.used, g->err);
        for (const onnx_tensor *t = g->tensors; t && !st; t = t->next)
            st = write_tensor(o, t, g->err);
        st = st ? st : pare_out_write(o, g->ends.data, g->ends.used, g->err);
    }
    if (st)
        pare_out_abort(o);
    else
        st = pare_out_commit(o, g->err);
    if (bytes) *bytes = graph + head.used;
    wire_free(&head);
    wire_free(&name);
    return st;
}

void onnx_free(onnx *g)
{
    wire_free(&g->nodes);
    wire_free(&g->ends);
}
